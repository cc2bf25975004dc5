"""Packages of optional extras. The error for a missing one says how to install it."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType


class MissingExtraError(ModuleNotFoundError):
    """A package of an optional extra is not installed. The message says how to install it."""


def extra_package(name: str, extra: str) -> ModuleType:
    """Import the module ``name``.

    Args:
        name: of the module.
        extra: the optional extra that installs it.

    Raises:
        MissingExtraError: the module is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise _missing(name, extra) from error


def extra_file(package: str, path: str, extra: str) -> Path:
    """The path of a data file in an installed package.

    The package is not imported: some packages import half a machine-learning stack, or have a
    licence that covers their code but not their data.

    Raises:
        MissingExtraError: the package is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise _missing(package, extra)
    return Path(spec.submodule_search_locations[0]) / path


def _missing(name: str, extra: str) -> MissingExtraError:
    return MissingExtraError(
        f"the package '{name.split('.')[0]}' is needed but not installed: "
        f"pip install -e '.[{extra}]'"
    )

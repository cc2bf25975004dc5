"""Packages of optional extras: an absent one is an error that says how to install it."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from agent_r1.errors import UserError


class MissingExtraError(UserError, ModuleNotFoundError):
    """A package of an optional extra is not installed; the message says how to install it."""


def extra_package(name: str, extra: str) -> ModuleType:
    """The module ``name``.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise _missing(name, extra) from error


def extra_file(package: str, path: str, extra: str) -> Path:
    """A data file that ``package`` brings along. The package is found, and never imported: some
    import half a machine-learning stack, or have a licence that only their data does without.

    Raises:
        MissingExtraError: the package is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise _missing(package, extra)
    return Path(spec.submodule_search_locations[0]) / path


def _missing(name: str, extra: str) -> MissingExtraError:
    return MissingExtraError(
        f"the package '{name.split('.')[0]}' is needed, and not installed: "
        f"pip install -e '.[{extra}]'"
    )

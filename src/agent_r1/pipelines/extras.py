"""Packages that only some pipelines need."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingExtraError(ModuleNotFoundError):
    """A package of an optional extra is not installed; the message says how to install it."""


def extra_package(name: str, extra: str) -> ModuleType:
    """The module ``name``.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"the package '{name.split('.')[0]}' is needed, and not installed: "
            f"pip install -e '.[{extra}]'"
        ) from error

"""Import on demand: packages of optional extras, and objects that ``conf/`` names.

The error for a missing package says how to install it. ``conf/`` names an object by its registered
name, or a user's own object by its import path: ``my_package.games:ChessEnv``.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from agent_r1.errors import UserError
from agent_r1.parameters import ParameterError, nearest

T = TypeVar("T")


class MissingExtraError(UserError, ModuleNotFoundError):
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


def named_object(kind: str, name: str, known: Mapping[str, Any], expected: type[T]) -> T:
    """The object with a registered name or an import path (``package.module:NAME``; a dot may
    replace the colon).

    Args:
        kind: kind of object for error messages, such as "reward term".
        name: the name in ``conf/``.
        known: registered name → the object or its import path.
        expected: class of the object; ``object`` if any class is allowed.

    Raises:
        ParameterError: the name is unknown (the message gives the nearest known name), its module
            cannot be imported (the message gives file and line), or the object has another class.
    """
    found = known.get(name, name)
    if isinstance(found, str):
        found = _imported(kind, name, found, known)
    if not isinstance(found, expected):
        raise ParameterError(f"{kind} '{name}' is not a {expected.__name__}: {found!r}")
    return found


def _imported(kind: str, name: str, path: str, known: Mapping[str, Any]) -> Any:
    module, _, attribute = path.replace(":", ".").rpartition(".")
    if not module:
        raise ParameterError(
            f"unknown {kind} '{name}'.{nearest(name, known)} "
            "Name an object of your own by its import path: 'package.module:NAME'."
        )
    try:
        return pkgutil.resolve_name(path if ":" in path else f"{module}:{attribute}")
    except Exception as error:  # a module may raise any exception while it is imported
        raise ParameterError(f"{kind} '{name}' cannot be imported: {_where(error)}") from error


def _where(error: Exception) -> str:
    """The error with the file and line of the imported module that raised it."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.line]
    own = [frame for frame in frames if frame.filename not in (__file__, *_IMPORTERS)]
    place = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


_IMPORTERS = (pkgutil.__file__, importlib.__file__)

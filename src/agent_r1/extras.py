"""What is imported on demand: packages of optional extras, and objects that ``conf/`` names.

An absent package is an error that says how to install it. A name is a registered one, or the import
path of an object of the user's own: ``my_package.games:ChessEnv``.
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


def named_object(kind: str, name: str, known: Mapping[str, Any], expected: type[T]) -> T:
    """The object that a registered name or an import path (``package.module:NAME``, or with a dot
    for the colon) stands for.

    Args:
        kind: what it is, for messages: "reward term".
        name: as ``conf/`` has it.
        known: registered name → the object or its import path.
        expected: the class that it must be an instance of; ``object``: anything.

    Raises:
        ParameterError: the name is unknown (the nearest known one is named), its module cannot be
            imported (the file and the line are named), or the object is of another class.
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
            "One of your own is named by its import path: 'package.module:NAME'."
        )
    try:
        return pkgutil.resolve_name(path if ":" in path else f"{module}:{attribute}")
    except Exception as error:  # a module may raise anything while it is imported
        raise ParameterError(f"{kind} '{name}' cannot be imported: {_where(error)}") from error


def _where(error: Exception) -> str:
    """The error, and the file and line of the imported module that raised it."""
    if isinstance(error, SyntaxError):
        return f"{error.msg} ({error.filename}, line {error.lineno})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.line]
    own = [frame for frame in frames if frame.filename not in (__file__, *_IMPORTERS)]
    place = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


_IMPORTERS = (pkgutil.__file__, importlib.__file__)

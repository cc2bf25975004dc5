"""Errors the user can fix: print the message, not the traceback.

1. A `UserError`, also one that Kedro wrapped because a dataset raised it.
2. What Kedro or OmegaConf say about a configuration that they cannot read.
3. A file that cannot be read or written: it is missing, it is damaged, or the disk is full.
4. A syntax error in the user's own module.

Every other exception is a fault of the program and keeps its traceback.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from agent_r1.errors import UserError

_REFUSALS = frozenset({errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EROFS})
"""No permission, over the quota, file too large, disk full, disk read-only."""
_MOST_LINES = 11
"""Of a message; the name of the node may follow."""
_PACKAGE = str(Path(__file__).parents[1])


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn an error that the user can fix into one message and exit code 1.

    Raises:
        click.ClickException: the block raised an error that the user can fix.
    """
    try:
        yield
    except Exception as error:
        message = message_for_user(error)
        if message is None:
            raise
        raise click.ClickException(message) from error


def message_for_user(error: BaseException) -> str | None:
    """What to print in place of the traceback; None for a fault of the program."""
    from kedro.io.core import DatasetError

    chain = list(_causes(error))
    of_dataset = isinstance(error, DatasetError)
    messages = (_message(each, of_dataset=of_dataset) for each in chain)
    message = next((each for each in messages if each is not None), None)
    if message is None and isinstance(chain[-1], DatasetError):
        message = str(chain[-1])  # nothing caused it: a dataset raised it on purpose
    notes = [note for each in chain for note in getattr(each, "__notes__", ())]
    return None if message is None else "\n".join([*_shortened(message.splitlines()), *notes])


def _shortened(lines: list[str]) -> list[str]:
    """At most `_MOST_LINES`; the first ones say what is wrong, the last one what to do."""
    left_out = len(lines) - _MOST_LINES
    if left_out <= 0:
        return lines
    return [*lines[: _MOST_LINES - 2], f"  … and {left_out + 1} more lines", lines[-1]]


def _message(error: BaseException, *, of_dataset: bool) -> str | None:
    """What one error of the chain says to the user; None if it says nothing to them."""
    from kedro.config import MissingConfigException
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    if isinstance(error, MissingConfigException):
        return f"{error}. --env names a folder in conf/."
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OmegaConfBaseException | YAMLError):
        return f"conf/ cannot be read: {error}"
    if isinstance(error, OSError) and (of_dataset or error.errno in _REFUSALS):
        return str(error)
    if isinstance(error, SyntaxError) and not str(error.filename).startswith(_PACKAGE):
        return f"{error.filename}, line {error.lineno}: not valid Python: {error.msg}"
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    while error is not None:
        yield error
        error = error.__cause__

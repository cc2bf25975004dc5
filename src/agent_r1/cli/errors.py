"""Errors the user can fix: print the message, not the traceback.

These are a `UserError`, Kedro's own refusal of a configuration or of a dataset, and a disk that
does not accept a file. Every other exception is a fault of the program and keeps its traceback.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import click

from agent_r1.errors import UserError

_REFUSALS = frozenset({errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EROFS})
"""No permission, over the quota, file too large, disk full, disk read-only."""


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
    """What to print in place of the traceback; None for a fault of the program.

    Kedro wraps what a dataset raises, so the cause of an error counts, too.
    """
    from kedro.config import MissingConfigException
    from kedro.io.core import DatasetError

    chain = list(_causes(error))
    for each in chain:
        if isinstance(each, UserError | MissingConfigException):
            return str(each)
        if isinstance(each, OSError) and each.errno in _REFUSALS:
            return str(each)
    # A DatasetError without a cause was raised on purpose: its message is for the user.
    return str(error) if isinstance(error, DatasetError) and len(chain) == 1 else None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    while error is not None:
        yield error
        error = error.__cause__

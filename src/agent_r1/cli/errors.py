"""Which errors the user can mend: of them the message is all that is shown."""

from __future__ import annotations

import errno
from typing import Any

import click

_REFUSALS = frozenset({errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EROFS})
"""No room, no more room for this user, a file too large, a disk that is only read."""


class UserErrors:
    """In this block, errors that the user can mend become one message and exit code 1."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is None:
            return
        from kedro.config import MissingConfigException

        from agent_r1.extras import MissingExtraError
        from agent_r1.lineage import LineageError
        from agent_r1.lineage.lock import LockedError
        from agent_r1.parameters import ParameterError
        from agent_r1.rollout import BrokenEnvironmentError
        from agent_r1.tasks.demonstrations import DemonstrationError
        from agent_r1.tasks.files import TaskFileError
        from agent_r1.tasks.knowledge_base import KnowledgeBaseError

        known = (
            BrokenEnvironmentError, DemonstrationError, KnowledgeBaseError, LineageError,
            LockedError, MissingConfigException, MissingExtraError, ParameterError, TaskFileError,
        )  # fmt: skip
        if isinstance(error, known) or _disk_refuses(error):
            raise click.ClickException(str(error)) from error


def _disk_refuses(error: BaseException | None) -> bool:
    """Whether the disk takes no more; Kedro wraps what a dataset raises."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _REFUSALS:
            return True
        error = error.__cause__
    return False

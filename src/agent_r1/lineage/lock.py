"""One writer at a time for an experiment; different experiments run side by side.

The operating system holds the lock, on ``<experiment>/.lock``, and frees it when the process ends,
however it ends. ``.holder.json`` beside it says who took it last.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from agent_r1.errors import UserError

FILE, HOLDER = ".lock", ".holder.json"

_LOCKS: dict[Path, FileLock] = {}
"""One object per file: it counts how often this process took it. A driver's runs are inside its
own."""


class LockedError(UserError, RuntimeError):
    """Another process works on the experiment; the message says which."""


@contextmanager
def locked(experiment: Path) -> Iterator[None]:
    """Hold the lock of an experiment's folder while the block runs.

    Raises:
        LockedError: another process holds it.
    """
    folder = experiment.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    lock = _LOCKS.setdefault(folder, FileLock(folder / FILE, thread_local=False))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise LockedError(
            f"experiment '{folder.name}' is in use by {_holder(folder)}. Wait until it ends, or "
            "name another experiment with --params experiment=NAME"
        ) from None
    try:
        if lock.lock_counter == 1:
            holder = {
                "process": os.getpid(),
                "host": platform.node(),
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
                "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            }
            (folder / HOLDER).write_text(json.dumps(holder) + "\n", encoding="utf-8")
        yield
    finally:
        lock.release()


def one_at_a_time(path: Path) -> FileLock:
    """A context that waits until no other process is inside one with the same lock file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path)


def _holder(folder: Path) -> str:
    try:
        holder = json.loads((folder / HOLDER).read_text(encoding="utf-8"))
        return (
            f"process {holder['process']} on {holder['host']} since {holder['since']} "
            f"({holder['command']})"
        )
    except (OSError, ValueError, KeyError):  # it was taken a moment ago
        return "another process"

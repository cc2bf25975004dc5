"""One writer at a time for an experiment; different experiments run side by side.

The lock is the operating system's, on ``<experiment>/.lock``: it is gone with the process that held
it, however that died, so a dead holder's lock is simply taken. The file says who holds it.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_r1.errors import UserError

FILE = ".lock"

_HELD: dict[Path, int] = {}
"""Locks of this process, and how often each was taken: a driver's runs are inside of its own."""


class LockedError(UserError, RuntimeError):
    """Another process works on the experiment; the message says which."""


@contextmanager
def locked(experiment: Path) -> Iterator[None]:
    """Hold the lock of an experiment's folder while the block runs.

    Raises:
        LockedError: another process holds it.
    """
    release = acquire(experiment)
    try:
        yield
    finally:
        release()


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until no other process is in such a block with the same lock file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def acquire(experiment: Path) -> Any:
    """Take the lock. Returns the function that gives it back.

    Raises:
        LockedError: another process holds it.
    """
    path = (experiment / FILE).absolute()
    if path in _HELD:
        _HELD[path] += 1
    else:
        handle = _take(path)
        _HELD[path] = 1
        _HANDLES[path] = handle

    def release() -> None:
        _HELD[path] -= 1
        if not _HELD[path]:
            del _HELD[path]
            os.close(_HANDLES.pop(path))

    return release


_HANDLES: dict[Path, int] = {}


def _take(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise LockedError(
            f"experiment '{path.parent.name}' is in use by {_holder(path)}. Wait until it ends, or "
            "name another experiment with --params experiment=NAME"
        ) from None
    holder = {
        "process": os.getpid(),
        "host": platform.node(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }
    os.ftruncate(handle, 0)
    os.write(handle, (json.dumps(holder) + "\n").encode())
    return handle


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return (
            f"process {holder['process']} on {holder['host']} since {holder['since']} "
            f"({holder['command']})"
        )
    except (OSError, ValueError, KeyError):  # it has just been taken
        return "another process"

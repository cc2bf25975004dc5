"""Which part of this machine's file system a sandboxed program sees, and as which user it runs.

1. Readable: the interpreter with its standard library, shared libraries and system programs.
2. Hidden, although inside those folders: installed packages (a benchmark's package holds its tests
   and solutions), and any other folder that this process imports from.
3. Nothing else exists for the program. At `Level.RLIMITS` other files exist, but cannot be opened.
"""

from __future__ import annotations

import functools
import os
import secrets
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

_SYSTEM = """
/bin /lib /lib32 /lib64 /usr/bin /usr/lib /usr/lib32 /usr/lib64 /usr/local/lib
/usr/share/zoneinfo /etc/ld.so.cache /etc/localtime
"""
WRITABLE_DEVICES = ("/dev/null", "/dev/full")
"""They discard what is written. Without /dev/zero: mapping it gives shared memory that no limit
counts."""
_FIRST_USER = 0x60000000
"""Far from existing users. A random one of 2^28 gives each run its own user."""


class FileLayout(NamedTuple):
    """Absolute paths, outer ones before inner ones."""

    interpreter: str
    readable: tuple[str, ...]
    hidden: tuple[str, ...]


@functools.cache
def layout() -> FileLayout:
    """The layout of this machine and interpreter."""
    interpreter = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    stdlib = Path(sysconfig.get_path("stdlib")).resolve()
    candidates = [*_SYSTEM.split(), str(stdlib.parent), interpreter]
    readable = _outermost([path for path in candidates if os.path.lexists(path)])
    packages = {
        str(folder)
        for root in {stdlib.parent, *map(Path, readable)}
        for pattern in ("python3*/site-packages", "python3*/dist-packages")
        for folder in root.glob(pattern)
    }
    imported = {os.path.realpath(path) for path in [*sys.path, os.getcwd()] if path}
    own = {str(stdlib), str(stdlib / "lib-dynload")}
    hidden = [
        path
        for path in sorted((packages | imported) - own)
        if os.path.isdir(path) and any(_within(path, root) for root in readable)
    ]
    return FileLayout(interpreter, tuple(readable), tuple(_outermost(hidden)))


def without_hidden(shown: FileLayout) -> tuple[list[str], list[str]]:
    """(readable, only listable) paths, for Landlock, which can allow paths but not except any."""
    readable: list[str] = []
    listable: list[str] = []
    pending = [os.path.realpath(path) for path in shown.readable]
    while pending:
        path = pending.pop()
        if path in shown.hidden:
            continue
        if any(_within(hidden, path) for hidden in shown.hidden):
            listable.append(path)
            pending += [entry.path for entry in os.scandir(path) if not entry.is_symlink()]
        else:
            readable.append(path)
    return [*readable, "/dev/random", "/dev/urandom"], listable


def unprivileged_user() -> int | None:
    """The user that a program becomes; None if this process is not root or has no other user.

    In a container that maps only some users, it is near the end of their range.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    try:
        ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except OSError:
        return None
    last = max((int(first) + int(count) - 1 for first, _, count in ranges), default=0)
    if last >= _FIRST_USER + 2**28:
        return _FIRST_USER + secrets.randbelow(2**28)
    return last - secrets.randbelow(last // 16) if last >= 60_000 else None


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _outermost(paths: list[str]) -> list[str]:
    kept: list[str] = []
    for path in sorted(paths):
        if not any(_within(path, folder) and not os.path.islink(folder) for folder in kept):
            kept.append(path)
    return kept

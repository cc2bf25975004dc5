"""The last steps of the process that becomes the program: each one takes something away.

A new session, limits, the user, capabilities, the file system (`landlock`), system calls
(`seccomp`). Then comes `exec`, which keeps these and nothing else of this process.
"""

from __future__ import annotations

import os
import resource
from typing import Any, NoReturn

from . import kernel, landlock, seccomp

MB = 1 << 20
_OPEN_FILES = 64
_SUPERVISOR = 2
"""The sandbox's own processes that count as the user's in a user namespace."""


def become(spec: dict[str, Any], keep: int) -> NoReturn:
    """Turn this process into the program; descriptor ``keep`` stays open until then.

    Raises:
        OSError: a step failed. Nothing of the program has run.
    """
    os.setsid()
    os.umask(0o077)
    os.closerange(3, keep)
    os.closerange(keep + 1, 4096)
    _set_limits(spec)
    if spec["level"] != "none":
        _give_up_privileges(spec["user"])
        sees_others = spec["level"] == "rlimits"
        if sees_others and landlock.version():
            landlock.restrict(spec["readable"], spec["listable"], spec["writable"])
        seccomp.install(sees_others=sees_others)
    os.execve(spec["command"][0], spec["command"], spec["environment"])


def _set_limits(spec: dict[str, Any]) -> None:
    limits = spec["limits"]
    wanted = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, limits["cpu_s"], limits["cpu_s"] + 1),
        (resource.RLIMIT_FSIZE, limits["file_mb"] * MB, limits["file_mb"] * MB),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
        (resource.RLIMIT_AS, limits["memory_mb"] * MB, limits["memory_mb"] * MB),
        (resource.RLIMIT_MEMLOCK, 0, 0),
    ]
    if spec["level"] != "none":
        most = limits["processes"] + _processes_before(spec)
        wanted.append((resource.RLIMIT_NPROC, most, most))
        wanted.append((resource.RLIMIT_MSGQUEUE, 0, 0))
    for kind, soft, hard in wanted:
        _, highest = resource.getrlimit(kind)
        if highest != resource.RLIM_INFINITY:
            soft, hard = min(soft, highest), min(hard, highest)
        resource.setrlimit(kind, (soft, hard))


def _processes_before(spec: dict[str, Any]) -> int:
    """Processes that the kernel already counts for the program's user: the limit is per user."""
    if spec["user"] is not None:
        return 0
    release = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())
    if spec["level"] != "rlimits" and release >= (5, 14):
        return _SUPERVISOR  # since then each user namespace counts for itself
    return tasks_of_user(os.getuid())


def tasks_of_user(user: int) -> int:
    """How many processes and threads of a user are visible from here."""
    tasks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == user:
                tasks += len(os.listdir(f"/proc/{name}/task"))
        except OSError:  # it has ended
            continue
    return tasks


def _give_up_privileges(user: int | None) -> None:
    kernel.drop_capabilities()
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    kernel.clear_capabilities()

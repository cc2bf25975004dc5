"""Namespaces without bubblewrap: own processes, mounts, network, IPC, host name.

1. `unshare`: directly as root, otherwise in a new user namespace that maps the user to itself.
2. A fork: the child is process 1 of the new PID namespace. When it ends, the kernel kills every
   process in the namespace, including daemons. It dies if the process that waits for it dies.
3. The root becomes an empty tmpfs. Only what the program may read is bound into it, read-only, with
   empty folders over what it may not read. One folder, of limited size, is writable.
4. The old root is unmounted. No path and no descriptor leads back to it.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from typing import Any

from . import kernel
from .kernel import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC

_NEW_USER = 0x10000000
_NEW_REST = 0x20000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
_BASE, _OLD = "/tmp", "/old"
_DEVICES = ("null", "full", "random", "urandom")
MAX_FILES = 10_000
"""Most files in the private folder: each takes kernel memory that its size does not show."""


def enter(spec: dict[str, Any], close: Callable[[], None]) -> None:
    """Continue as process 1 of new namespaces; the calling process waits, and exits with it.

    ``close`` is called in the waiting process, which must not keep anything open.

    Raises:
        OSError: the machine does not allow it; the message names the step.
    """
    _unshare()
    child = os.fork()
    if child:
        close()
        os.closerange(0, 3)
        _, status = os.waitpid(child, 0)
        os._exit(0 if status == 0 else 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    _build_root(spec)


def _unshare() -> None:
    try:
        kernel.unshare(_NEW_REST)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    else:
        return
    user, group = os.getuid(), os.getgid()
    kernel.unshare(_NEW_USER | _NEW_REST)
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def _build_root(spec: dict[str, Any]) -> None:
    kernel.mount("none", "/", "", MS_REC | MS_PRIVATE)
    kernel.mount("tmpfs", _BASE, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    os.mkdir(_BASE + _OLD)
    kernel.syscall("pivot_root", kernel.PIVOT_ROOT, _BASE.encode(), (_BASE + _OLD).encode())
    os.chdir("/")
    for path in spec["readable"]:
        _bind_readable(path)
    for path in spec["hidden"]:
        kernel.mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=755")
    _mount_devices(spec["folder"])
    os.mkdir("/proc")
    kernel.mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    os.mkdir(spec["folder"])
    size = f"size={spec['limits']['disk_mb']}m,nr_inodes={MAX_FILES},mode=700"
    kernel.mount("tmpfs", spec["folder"], "tmpfs", MS_NOSUID | MS_NODEV, size)
    if not os.path.exists("/tmp"):
        os.symlink(spec["folder"], "/tmp")
    kernel.unmount(_OLD)
    os.rmdir(_OLD)
    kernel.restrict_mount("/", MS_RDONLY, recursive=False)


def _bind_readable(path: str) -> None:
    source = _OLD + path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), path)
        return
    _bind(source, path)
    kernel.restrict_mount(path, MS_RDONLY | MS_NOSUID | MS_NODEV, recursive=True)


def _bind(source: str, path: str) -> None:
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o444))
    kernel.mount(source, path, "", MS_BIND | MS_REC)


def _mount_devices(folder: str) -> None:
    os.mkdir("/dev")
    for name in _DEVICES:
        _bind(f"{_OLD}/dev/{name}", f"/dev/{name}")
    os.symlink("/proc/self/fd", "/dev/fd")
    os.symlink(folder, "/dev/shm")  # semaphores of multiprocessing are files there

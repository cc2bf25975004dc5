"""The system calls that Python 3.11 does not offer as functions. Linux only."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

MACHINE = platform.machine()
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}.get(MACHINE, -1)
CAPSET = {"x86_64": 126, "aarch64": 91}.get(MACHINE, -1)
# These have one number on every architecture.
MOUNT_SETATTR = 442
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP = 1, 4, 22
PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 24, 36, 38

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(what: str, number: int, *arguments: int | bytes | ctypes.Array | None) -> int:
    """A raw system call; ``what`` names it in the error.

    Raises:
        OSError: it failed, or this architecture's number for it is not known (-1).
    """
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *wide), what)


def prctl(option: int, argument: int, pointer: ctypes.Array | bytes | int = 0) -> int:
    """prctl(2), whose further arguments are 0."""
    wide = ctypes.c_ulong(pointer) if isinstance(pointer, int) else pointer
    zero = ctypes.c_ulong(0)
    result = _libc.prctl(option, ctypes.c_ulong(argument), wide, zero, zero)
    return _checked(result, f"prctl {option}")


def unshare(flags: int) -> None:
    """unshare(2)."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2)."""
    texts = [text.encode() for text in (source, target, kind)]
    result = _libc.mount(*texts, ctypes.c_ulong(flags), options.encode())
    _checked(result, f"mount {kind or 'bind'} {target}")


def unmount(target: str) -> None:
    """umount2(2), lazily: open files stay open, no other file can be opened."""
    _checked(_libc.umount2(target.encode(), MNT_DETACH), f"unmount {target}")


def restrict_mount(path: str, flags: int, *, recursive: bool) -> None:
    """Add MS_RDONLY, MS_NOSUID, MS_NODEV to a mount; if ``recursive``, to all below it, too."""
    attributes = struct.pack("=4Q", flags, 0, 0, 0)
    how = _AT_RECURSIVE if recursive else 0
    syscall(
        f"mount_setattr {path}",
        MOUNT_SETATTR,
        _AT_FDCWD,
        os.fsencode(path),
        how,
        attributes,
        len(attributes),
    )


def drop_capabilities() -> None:
    """Rule out new privileges: neither exec nor a set-user-id file can give any."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # this process may not drop it, or the kernel has fewer
            continue
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def clear_capabilities() -> None:
    """Empty the effective, permitted and inheritable sets."""
    version_3 = struct.pack("=Ii", 0x20080522, 0)
    syscall("capset", CAPSET, version_3, bytes(24))

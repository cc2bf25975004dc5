"""Landlock: only the given paths of the file system can be opened (Linux 5.13 and later).

It does not hide a file's existence and attributes from `stat`, and does not refuse changes of
modes, owners and times; `seccomp` refuses those.
"""

from __future__ import annotations

import os
import struct

from . import kernel
from .kernel import syscall

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_READ = EXECUTE | READ_FILE | READ_DIR
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14
_SIGNALS_AND_ABSTRACT_SOCKETS = 3
_TCP = 3


def version() -> int:
    """The kernel's version of the Landlock ABI; 0 without Landlock."""
    try:
        return syscall("landlock", kernel.LANDLOCK_CREATE_RULESET, 0, 0, 1)
    except OSError:
        return 0


def restrict(readable: list[str], listable: list[str], writable: list[str]) -> None:
    """Allow reading and executing below ``readable``, listing of folders below ``listable``, and
    everything below ``writable``; paths that do not exist are skipped.

    Raises:
        OSError: the kernel has no Landlock.
    """
    abi = version()
    everything = (1 << (13 + (abi >= 2) + (abi >= 3))) - 1 | (abi >= 5) << 15
    attributes = struct.pack("=Q", everything)
    if abi >= 4:
        attributes += struct.pack("=Q", _TCP)
    if abi >= 6:
        attributes += struct.pack("=Q", _SIGNALS_AND_ABSTRACT_SOCKETS)
    rules = syscall("landlock", kernel.LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    for paths, access in ((readable, _READ), (listable, READ_DIR), (writable, everything)):
        for path in paths:
            _allow(rules, path, access & everything)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    syscall("landlock_restrict_self", kernel.LANDLOCK_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow(rules: int, path: str, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        access &= _OF_FILES
    rule = struct.pack("=Qi", access, place)
    syscall(f"landlock_add_rule {path}", kernel.LANDLOCK_ADD_RULE, rules, 1, rule, 0)
    os.close(place)

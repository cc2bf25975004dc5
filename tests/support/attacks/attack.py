"""What an attack is, and what all of them can use."""

from __future__ import annotations

from typing import NamedTuple

MARK = "98765"
"""An argument of the commands that hostile programs start, to find them by."""
CANARY = "SANDBOX_TEST_CANARY"

PRELUDE = """
import ctypes, json, os, resource, signal, socket, stat, subprocess, sys, threading, time
try:
    secret, parent, project = json.loads(sys.stdin.readline())
except ValueError:  # it is run as a solution: there is nothing to be told
    secret, parent, project = "/secret", 1, "/"

def attempt(name, action):
    try:
        result = action()
    except (OSError, ImportError, ValueError, subprocess.SubprocessError):
        print("-", end="")  # it was tried
    else:
        print("ESCAPED:", name, repr(result)[:200])

def syscall(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

libc = ctypes.CDLL(None, use_errno=True)
"""


class Attack(NamedTuple):
    """A program, and how it may end."""

    source: str
    statuses: tuple[str, ...] = ("ok",)
    timeout_s: float | None = None
    """Given where the program never ends by itself."""

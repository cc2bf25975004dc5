"""Processes that tests need."""

from __future__ import annotations

import os


def dead_process() -> int:
    """The number of a process that has ended."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return child

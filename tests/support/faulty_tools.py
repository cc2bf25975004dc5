"""One tool that fails in every way, as a function, a coroutine and in a process of its own.

It keeps count in a file: a process that was killed remembers nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_r1.mdp import EnvironmentFailure
from agent_r1.tools import BadArguments, tool

NEVER = threading.Event()
"""A test sets it when it is over, so that no thread of it stays."""


def _tries(file: str) -> int:
    """How often it was called with this file, this call included."""
    with Path(file).open("a+") as handle:
        handle.write("x")
        handle.seek(0)
        return len(handle.read())


def _raise(error: Exception) -> None:
    raise error


FAULTS: dict[str, Callable[[int], Any]] = {
    "exception": lambda number: _raise(ConnectionError(f"no route, try {number}")),
    "bad_arguments": lambda number: _raise(BadArguments("'seven' is no number")),
    "environment": lambda number: _raise(EnvironmentFailure("the simulator died")),
    "oversized": lambda number: "y" * 100_000,
    "not_json": lambda number: {number},
    "killed": lambda number: os.kill(os.getpid(), signal.SIGKILL),
    "timeout": lambda number: NEVER.wait(60),
}


def _ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _fails(kind: str, file: str, times: int) -> int:
    """Which try this is if it fails, else 0."""
    number = _tries(file)
    return number if number <= times else 0


@tool(name="fail")
def fail_sync(kind: str, file: str, times: int) -> Any:
    """Fail in one way for a number of times, then answer."""
    if number := _fails(kind, file, times):
        return FAULTS["timeout" if kind == "hang" else kind](number)
    return "there"


@tool(name="fail")
async def fail_async(kind: str, file: str, times: int) -> Any:
    """Fail in one way for a number of times, then answer."""
    number = _fails(kind, file, times)
    if number and kind in ("timeout", "hang"):
        with contextlib.suppress(*([asyncio.CancelledError] if kind == "hang" else [])):
            await asyncio.Event().wait()
    return FAULTS[kind](number) if number and kind != "hang" else "there"


@tool(name="fail", isolated=True)
def fail_process(kind: str, file: str, times: int) -> Any:
    """Fail in one way for a number of times, then answer."""
    if number := _fails(kind, file, times):
        if kind == "hang":
            _ignore_signals()
            while True:
                signal.pause()
        return FAULTS[kind](number)
    return "there"


MODES = {"sync": fail_sync, "async": fail_async, "process": fail_process}

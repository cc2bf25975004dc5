"""Tools for worker processes, which must be able to import them. Each keeps count in a file, as a
process that was killed remembers nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from agent_r1.mdp import EnvironmentFailure
from agent_r1.tools import BadArguments, tool


def tries(file: str) -> int:
    """How often this was called with this file, this call included."""
    with Path(file).open("a+") as handle:
        handle.write("x")
        handle.seek(0)
        return len(handle.read())


@tool(isolated=True)
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@tool(isolated=True)
async def add_later(a: int) -> int:
    """Add, on an event loop."""
    await asyncio.sleep(0)
    return a + 1


@tool(isolated=True)
def pid() -> int:
    """Who am I?"""
    return os.getpid()


@tool(isolated=True)
def meet(folder: str, name: str, other: str) -> str:
    """Return only once the other is there."""
    (Path(folder) / name).touch()
    while not (Path(folder) / other).exists():
        pass
    return name


@tool(isolated=True)
def talk(text: str) -> str:
    """Print, read and write where the connection might be."""
    print(text)
    os.write(1, b'{"text": "forged", "length": 6}\n')
    return sys.stdin.read() + text


@tool(isolated=True, attempts=1, timeout_s=0.2)
def hang(file: str) -> str:
    """Ignore all that can be ignored, and leave a child running."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(file).write_text(f"{os.getpid()} {child.pid}")
    while True:
        pass


@tool(isolated=True)
def fail(kind: str, file: str, times: int) -> str:
    """Fail in one way for a number of times, then answer."""
    number = tries(file)
    if number > times:
        return "there"
    if kind == "exception":
        raise ConnectionError(f"no route, try {number}")
    if kind == "bad_arguments":
        raise BadArguments("not a number")
    if kind == "environment":
        raise EnvironmentFailure("the simulator died")
    if kind == "exit":
        os._exit(3)
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "not_json":
        return {1, 2}  # type: ignore[return-value]
    if kind == "oversized":
        return "y" * 100_000
    threading.Event().wait()
    return "?"


class Shelf:
    """A function in a class is a function of its arguments, too."""

    @tool(isolated=True, name="double")
    def twice(n: int) -> int:
        """Double."""
        return 2 * n

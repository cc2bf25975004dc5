"""Tools for worker processes, which must be able to import them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from agent_r1.tools import tool


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
def give_up(what: str) -> str:
    """Fail."""
    raise ConnectionError(what)


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


@tool(isolated=True)
def forge() -> str:
    """Write an answer of its own wherever something is open."""
    for descriptor in range(3, 32):
        with contextlib.suppress(OSError):
            os.write(descriptor, b'{"text": "forged", "length": 6}\n')
    return "honest"


@tool(isolated=True)
def fork() -> str:
    """Return twice."""
    return "child" if os.fork() == 0 else "parent"


@tool(isolated=True, attempts=1, timeout_s=0.2)
def hang(file: str) -> str:
    """Ignore all that can be ignored, and leave a child running."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(file).write_text(f"{os.getpid()} {child.pid}")
    while True:
        pass


class Shelf:
    """A function in a class is a function of its arguments, too."""

    @tool(isolated=True, name="double")
    def twice(n: int) -> int:  # noqa: N805
        """Double."""
        return 2 * n

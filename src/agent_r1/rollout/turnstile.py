"""Make trajectories wait: for each other, or for room."""

from __future__ import annotations

import asyncio
from collections import deque


class Turnstile:
    """A barrier: when all members have arrived, they pass together in the order of their names."""

    def __init__(self, members: int) -> None:
        """``members``: the expected number. A member that does not return must `leave`."""
        self._members = members
        self._waiting: dict[str, asyncio.Future[None]] = {}

    async def arrive(self, name: str) -> None:
        """Wait until every member has arrived or left."""
        passed = self._waiting[name] = asyncio.get_running_loop().create_future()
        self._look()
        await passed

    def leave(self) -> None:
        """Expect one member fewer."""
        self._members -= 1
        self._look()

    @property
    def _complete(self) -> bool:
        return bool(self._waiting) and len(self._waiting) >= self._members

    def _look(self) -> None:
        if self._complete:
            # Not at once: the last member would pass before the others.
            asyncio.get_running_loop().call_soon(self._open)

    def _open(self) -> None:
        if not self._complete:
            return
        waiting, self._waiting = self._waiting, {}
        for name in sorted(waiting):
            if not waiting[name].done():
                waiting[name].set_result(None)


class Room:
    """Limits the number of trajectories that run at the same time."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def enter(self, count: int) -> None:
        """Wait for ``count`` free places, at most the room's size. First come, first served."""
        ticket = (count, asyncio.get_running_loop().create_future())
        self._waiting.append(ticket)
        self._let_in()
        await ticket[1]

    def leave(self, count: int) -> None:
        """Free ``count`` places."""
        self._free += count
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            count, admitted = self._waiting.popleft()
            if not admitted.done():
                self._free -= count
                admitted.set_result(None)

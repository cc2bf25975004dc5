"""How many calls of one tool run at once, over all trajectories of an event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from weakref import WeakKeyDictionary

_Slots = dict[tuple[Callable[..., Any], int], asyncio.Semaphore]

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, _Slots] = WeakKeyDictionary()


def slot(function: Callable[..., Any], limit: int | None) -> AbstractAsyncContextManager[Any]:
    """Waits for one of the function's ``limit`` slots and holds it; first come, first served.

    Methods bound to different instances are one function: every trajectory has its own environment,
    but they share the tool.
    """
    if limit is None:
        return contextlib.nullcontext()
    of_loop = _slots.setdefault(asyncio.get_running_loop(), {})
    key = (getattr(function, "__func__", function), limit)
    if key not in of_loop:
        of_loop[key] = asyncio.Semaphore(limit)
    return of_loop[key]

"""Hand results from the worker thread to the event loops whose tasks wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from agent_r1.engines.base import Generation
from agent_r1.engines.session import Request


def resolve(results: Iterable[tuple[Request, Generation]]) -> None:
    """Give each request its action, with one call per event loop. Closed loops are skipped."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Request, Generation]]] = {}
    for request, generation in results:
        by_loop.setdefault(request.loop, []).append((request, generation))
    for loop, own in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_set_results, own)


def reject(requests: Iterable[Request], error: BaseException) -> None:
    """Raise ``error`` in every task that waits for one of the requests."""
    for request in requests:
        if not request.loop.is_closed():
            request.loop.call_soon_threadsafe(_set_error, request, error)


def _set_results(results: Sequence[tuple[Request, Generation]]) -> None:
    for request, generation in results:
        if not request.future.done():
            request.future.set_result(generation)


def _set_error(request: Request, error: BaseException) -> None:
    if not request.future.done():
        request.future.set_exception(error)

"""Run coroutines: from synchronous code, and many at the same time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from agent_r1.tools.threads import CANCEL_S

T = TypeVar("T")


def run_until_done(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` and return its result. If an event loop is running already, as in a notebook,
    ``work`` runs in a separate thread, and the caller's loop waits."""

    def run() -> None:
        try:
            outcome.append(_run(work))
        except BaseException as error:  # raised again in the caller's thread
            failure.append(error)

    outcome: list[T] = []
    failure: list[BaseException] = []
    if _loop_is_running():
        thread = threading.Thread(target=run, name="rollout")
        thread.start()
        thread.join()
    else:
        run()
    if failure:
        raise failure[0]
    return outcome[0]


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, but does not wait forever for a coroutine that ignores cancellation."""
    runner = asyncio.Runner()
    try:
        return runner.run(work)
    finally:
        loop = runner.get_loop()
        if loop.run_until_complete(_all_ended()):
            runner.close()
        else:
            loop.close()


async def _all_ended() -> bool:
    """Cancel the remaining tasks. False if some of them continue nevertheless."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    return not left or not (await asyncio.wait(left, timeout=2 * CANCEL_S))[1]


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in order. The first error cancels the rest and is raised unchanged."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

"""Calls under a time limit: coroutines on the event loop, blocking functions in worker threads.

`asyncio.to_thread` does not work here: its threads are joined when the loop and the interpreter
end, so one call that never returns would hang the program. These threads are daemons. One whose
call ran out of time is written off: it no longer counts, and ends if its call ever returns. Threads
cannot be killed, so what must not outlive its time limit belongs in a process.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from agent_r1.tools.failures import RemoteFailure, reason

MAX_THREADS = 32
"""Blocking calls at once. Tools wait for disks and servers, so more than there are cores; but a
thousand trajectories must not start a thousand threads."""

CANCEL_S = 1.0
"""Seconds that a cancelled coroutine has to clean up; then it is closed."""


class TimeLimitExceeded(Exception):
    """A call ran out of time. Not a TimeoutError, which may be the function's own."""


class _Job:
    """A call on its way through a worker; its futures belong to the caller's event loop."""

    def __init__(self, function: Callable[[], Any]):
        self.function = function
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = self.loop.create_future()
        self.finished: asyncio.Future[tuple[Any, BaseException | None]] = self.loop.create_future()
        self.abandoned = False
        self.ended = False

    def settle(self, future: asyncio.Future[Any], value: Any) -> None:
        """Resolve a future from a worker; ignored if the loop is closed or no longer waits."""

        def resolve() -> None:
            if not future.done():
                future.set_result(value)

        with contextlib.suppress(RuntimeError):  # raised by a closed loop
            self.loop.call_soon_threadsafe(resolve)

    def execute(self) -> None:
        self.settle(self.finished, self.context.run(_called, self.function))


class WorkerThreads:
    """Runs blocking functions for any number of event loops, in at most ``limit`` threads."""

    def __init__(self, limit: int = MAX_THREADS):
        self._limit = limit
        self._jobs: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._threads = 0
        self._idle = 0

    async def run(self, function: Callable[[], Any], timeout_s: float | None = None) -> Any:
        """Call the function in a thread and return its value.

        Waiting for a free thread does not count against the time limit.

        Raises:
            TimeLimitExceeded: it ran longer than ``timeout_s``; its thread is written off.
            BaseException: what the function raised.
        """
        job = _Job(function)
        self._submit(job)
        try:
            await job.started
            done, _ = await asyncio.wait({job.finished}, timeout=timeout_s)
            if not done:
                raise TimeLimitExceeded
            value, error = job.finished.result()
        finally:
            if not job.finished.done():
                self._abandon(job)
        if error is not None:
            raise error
        return value

    def _submit(self, job: _Job) -> None:
        with self._wake:
            self._jobs.append(job)
            if self._idle < len(self._jobs) and self._threads < self._limit:
                self._start_thread()
            self._wake.notify()

    def _start_thread(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name="agent-r1-worker", daemon=True).start()

    def _abandon(self, job: _Job) -> None:
        with self._wake:
            if job in self._jobs:
                self._jobs.remove(job)
                return
            if job.ended:
                return
            job.abandoned = True
            self._threads -= 1
            if self._jobs and self._idle < len(self._jobs):
                self._start_thread()

    def _work(self) -> None:
        while True:
            with self._wake:
                self._idle += 1
                self._wake.wait_for(lambda: self._jobs)
                self._idle -= 1
                job = self._jobs.popleft()
            job.settle(job.started, None)
            job.execute()
            with self._wake:
                job.ended = True
                if job.abandoned:
                    return


WORKERS = WorkerThreads()
"""Shared by all tools and environments of the process."""


async def call_within(timeout_s: float | None, function: Callable[[], Any]) -> Any:
    """Call a function, sync or async, and stop waiting for it after ``timeout_s`` seconds.

    If a sync function returns an awaitable, that is awaited, with the same limit again.

    Raises:
        TimeLimitExceeded: it ran out of time; a coroutine is cancelled, a thread written off.
        Exception: what the function raised; a RuntimeError if it cancelled itself.
        RemoteFailure: it raised something that is not an `Exception`, such as ``SystemExit`` or a
            panic of a library written in Rust. That ends the call, not the program.
        KeyboardInterrupt: the user stopped the program while a coroutine ran.
    """
    if not inspect.iscoroutinefunction(function):
        value = _value(*await WORKERS.run(functools.partial(_called, function), timeout_s))
        return await _awaited_within(timeout_s, value) if inspect.isawaitable(value) else value
    return await _awaited_within(timeout_s, function())


async def _awaited_within(timeout_s: float | None, awaitable: Awaitable[Any]) -> Any:
    task = asyncio.ensure_future(_awaited(awaitable))
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
        if not done:
            raise TimeLimitExceeded
    finally:
        if not task.done():
            task.cancel()
            asyncio.get_running_loop().call_later(CANCEL_S, _close, task, awaitable)
    return _value(*task.result())


def _called(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """The function's value or what it raised. Signals do not reach threads, so it is its own."""
    try:
        return function(), None
    except BaseException as error:
        return None, error


async def _awaited(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """The awaited value or what was raised: a SystemExit in a task would end the event loop."""
    try:
        return await awaitable, None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, error


def _value(value: Any, error: BaseException | None) -> Any:
    if isinstance(error, asyncio.CancelledError):  # the caller's own is raised elsewhere
        raise RuntimeError("the call cancelled itself") from error
    if error is not None and not isinstance(error, Exception):
        raise RemoteFailure(reason(error)) from error
    if error is not None:
        raise error
    return value


def _close(task: asyncio.Task[Any], awaitable: Awaitable[Any]) -> None:
    """End a coroutine that ignores its cancellation: the event loop would wait for it."""
    if not task.done() and isinstance(awaitable, Coroutine):
        with contextlib.suppress(RuntimeError):  # it ignores the closing, too
            awaitable.close()
        task.cancel()

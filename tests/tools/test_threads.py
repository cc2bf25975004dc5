"""Worker threads: reused, bounded, and written off when a call does not return."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from agent_r1.tools.threads import TimeLimitExceeded, WorkerThreads, call_within


def test_a_thread_is_reused_across_calls_and_event_loops():
    workers = WorkerThreads(limit=1)
    threads = {asyncio.run(workers.run(threading.get_ident)) for _ in range(5)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_no_more_calls_run_at_once_than_there_are_threads():
    workers, lock = WorkerThreads(limit=2), threading.Lock()
    running, most = 0, 0
    met = threading.Barrier(2)

    def work():
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        met.wait(10)
        with lock:
            running -= 1

    async def scenario():
        await asyncio.gather(*(workers.run(work) for _ in range(6)))

    asyncio.run(scenario())
    assert most == 2


def test_waiting_for_a_thread_is_not_counted_against_the_time_limit():
    workers, release = WorkerThreads(limit=1), threading.Event()

    async def scenario():
        blocker = asyncio.ensure_future(workers.run(release.wait))
        waiting = asyncio.ensure_future(workers.run(lambda: "late", timeout_s=0.001))
        with pytest.raises(TimeLimitExceeded):  # a longer limit runs out meanwhile
            await WorkerThreads(limit=1).run(release.wait, timeout_s=0.03)
        assert not waiting.done()
        waiting.cancel()
        release.set()
        return await blocker

    assert asyncio.run(scenario()) is True


def test_a_thread_that_does_not_return_is_replaced_and_its_late_value_dropped():
    workers, release = WorkerThreads(limit=1), threading.Event()

    async def scenario():
        with pytest.raises(TimeLimitExceeded):
            await workers.run(release.wait, timeout_s=0.01)
        assert await workers.run(lambda: "next") == "next"
        release.set()
        return await workers.run(lambda: "after")

    assert asyncio.run(scenario()) == "after"


def test_a_thread_that_was_written_off_ends_when_its_call_returns():
    workers, release, threads = WorkerThreads(limit=1), threading.Event(), []

    def hang():
        threads.append(threading.current_thread())
        release.wait()

    with pytest.raises(TimeLimitExceeded):
        asyncio.run(workers.run(hang, timeout_s=0.01))
    release.set()
    threads[0].join(10)
    assert not threads[0].is_alive()


def test_a_cancelled_call_that_waits_never_starts():
    workers, release, started = WorkerThreads(limit=1), threading.Event(), []

    async def scenario():
        blocker = asyncio.ensure_future(workers.run(release.wait))
        queued = asyncio.ensure_future(workers.run(lambda: started.append(1)))
        await asyncio.sleep(0)
        queued.cancel()
        await asyncio.gather(queued, return_exceptions=True)
        release.set()
        await blocker
        await workers.run(lambda: None)

    asyncio.run(scenario())
    assert started == []


def test_the_thread_has_the_callers_context():
    name = contextvars.ContextVar("name", default="none")

    async def scenario():
        name.set("caller")
        return await call_within(5, name.get)

    assert asyncio.run(scenario()) == "caller"


def test_a_timeout_error_of_the_function_is_its_own():
    def fail():
        raise TimeoutError("the server's")

    with pytest.raises(TimeoutError, match="the server's"):
        asyncio.run(call_within(5, fail))

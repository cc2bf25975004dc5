"""The outcomes of the calls of one action."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading

import pytest

from agent_r1.mdp import EnvironmentFailure, ToolCall, ToolStatus
from agent_r1.parameters import ParameterError
from agent_r1.tools import ToolParameters, ToolRuntime, threads, tool
from agent_r1.tools.threads import MAX_THREADS


def run(specs, *calls, **parameters):
    runtime = ToolRuntime(specs, ToolParameters(**parameters))
    return asyncio.run(runtime.run([ToolCall(name, arguments) for name, arguments in calls]))


@tool
def echo(text: str) -> str:
    """Say it again."""
    return text


def test_a_result_is_recorded():
    (result,) = run([echo], ("echo", {"text": "hi"}))
    assert (result.name, result.status, result.content, result.attempts) == (
        "echo",
        ToolStatus.OK,
        "hi",
        1,
    )
    assert result.latency_ms > 0


def test_no_calls_give_no_results():
    assert run([echo]) == ()


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        (None, "done"),
        (True, "true"),
        (3, "3"),
        ({"a": [1, "é"]}, '{"a": [1, "é"]}'),
        ("lone \ud800", "lone ?"),
    ],
)
def test_values_become_text(value, content):
    @tool
    def give():
        """Give."""
        return value

    (result,) = run([give], ("give", {}))
    assert (result.status, result.content) == (ToolStatus.OK, content)


def test_p30_results_of_mixed_sync_and_async_calls_are_in_call_order():
    """The calls end in the reverse of the order in which they were made."""
    last_began, async_began = threading.Event(), threading.Event()

    @tool
    def first() -> str:
        """Ends last."""
        assert async_began.wait(10)
        return "1"

    @tool
    async def second() -> str:
        """Ends second."""
        while not last_began.is_set():
            await asyncio.sleep(0)
        async_began.set()
        return "2"

    @tool
    def third() -> str:
        """Ends first."""
        last_began.set()
        return "3"

    results = run([third, second, first], ("first", {}), ("second", {}), ("third", {}))
    assert [result.content for result in results] == ["1", "2", "3"]


def test_p31_a_failing_call_is_tried_three_times_and_the_third_is_final():
    tries = []

    @tool
    def broken() -> str:
        """Fail."""
        tries.append(1)
        raise ConnectionError(f"no route, try {len(tries)}")

    (result,) = run([broken], ("broken", {}))
    assert len(tries) == 3
    assert (result.status, result.attempts) == (ToolStatus.ERROR, 3)
    assert result.content == "error: broken: ConnectionError: no route, try 3"


def test_p31_success_ends_the_attempts():
    tries = []

    @tool
    async def shaky() -> str:
        """Fail once."""
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError
        return "there"

    (result,) = run([shaky], ("shaky", {}))
    assert (result.status, result.attempts, result.content) == (ToolStatus.OK, 2, "there")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_p31_a_call_that_never_returns_does_not_hold_the_others_or_the_loop(kind):
    never = threading.Event()

    @tool(attempts=2, timeout_s=0.02)
    def hang_sync() -> str:
        """Never return."""
        never.wait()
        return "?"

    @tool(attempts=2, timeout_s=0.02)
    async def hang_async() -> str:
        """Never return."""
        await asyncio.Event().wait()
        return "?"

    name = f"hang_{kind}"
    results = run([hang_sync, hang_async, echo], (name, {}), ("echo", {"text": "x"}))
    never.set()
    assert [result.status for result in results] == [ToolStatus.TIMEOUT, ToolStatus.OK]
    assert results[0].attempts == 2
    assert results[0].content == f"error: {name} did not answer within 0.02 s"


def test_p31_more_hanging_calls_than_threads_do_not_starve_later_ones():
    never = threading.Event()

    @tool(attempts=1, timeout_s=0.01)
    def hang() -> str:
        """Never return."""
        never.wait()
        return "?"

    calls = [("hang", {})] * (MAX_THREADS + 1) + [("echo", {"text": "x"})]
    results = run([hang, echo], *calls)
    never.set()
    assert results[-1].content == "x"
    assert {result.status for result in results[:-1]} == {ToolStatus.TIMEOUT}


def test_p31_an_exception_of_any_kind_is_a_result():
    class Rude(Exception):
        def __str__(self):
            raise ValueError("no message for you")

    @tool
    def rude() -> str:
        """Raise what cannot be printed."""
        raise Rude

    @tool
    def leave() -> str:
        """Exit."""
        raise SystemExit(3)

    @tool
    async def leave_async() -> str:
        """Exit."""
        raise SystemExit(3)

    @tool
    async def cancel() -> str:
        """Cancel itself."""
        raise asyncio.CancelledError

    @tool
    def stop() -> str:
        """End an iteration that nobody began."""
        raise StopIteration

    specs = [rude, leave, leave_async, cancel, stop]
    results = run(specs, *((spec.name, {}) for spec in specs))
    assert {result.status for result in results} == {ToolStatus.ERROR}
    assert results[1].content == "error: leave: SystemExit: 3"


class Panic(BaseException):
    """As libraries written in Rust raise it."""


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (Panic("index out of bounds"), "Panic: index out of bounds"),
        (GeneratorExit(), "GeneratorExit"),
        (BaseExceptionGroup("two", [Panic()]), "BaseExceptionGroup: two (1 sub-exception)"),
        (asyncio.CancelledError(), "RuntimeError: the call cancelled itself"),
        (SystemExit(3), "SystemExit: 3"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_p31_a_base_exception_ends_only_its_call(kind, raised, reason):
    @tool(name="panic")
    def panic() -> str:
        """Raise it."""
        raise raised

    @tool(name="panic")
    async def panic_async() -> str:
        """Raise it."""
        raise raised

    failed, fine = run(
        [panic if kind == "sync" else panic_async, echo], ("panic", {}), ("echo", {"text": "x"})
    )
    assert (failed.status, failed.attempts) == (ToolStatus.ERROR, 3)
    assert failed.content == f"error: panic: {reason}"
    assert fine.content == "x"


def test_p31_a_keyboard_interrupt_raised_in_a_thread_is_the_tools_failure():
    @tool
    def interrupt() -> str:
        """No signal gets here."""
        raise KeyboardInterrupt

    (result,) = run([interrupt], ("interrupt", {}))
    assert result.content == "error: interrupt: KeyboardInterrupt"


def test_p31_a_coroutine_that_ignores_its_cancellation_is_closed(monkeypatch):
    monkeypatch.setattr(threads, "CANCEL_S", 0.02)

    @tool(attempts=1, timeout_s=0.02)
    async def stubborn() -> str:
        """Go on."""
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    ended = []

    def collect():
        ended.append(run([stubborn], ("stubborn", {}))[0].status)

    # asyncio.run waits for all tasks: in a thread, so that a failure does not hang the tests.
    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(10)
    assert ended == [ToolStatus.TIMEOUT]


def test_each_attempt_gets_the_original_arguments():
    seen = []

    @tool
    def pop(items: list[int]) -> str:
        """Change an argument, and fail."""
        seen.append(list(items))
        items.clear()
        raise ConnectionError

    call = ToolCall("pop", {"items": [1, 2]})
    asyncio.run(ToolRuntime([pop]).run([call]))
    assert seen == [[1, 2]] * 3
    assert call.arguments == {"items": [1, 2]}


def test_a_function_around_a_coroutine_is_awaited_within_the_time_limit():
    def plain(function):
        @functools.wraps(function)
        def called(*args, **kwargs):
            return function(*args, **kwargs)

        return called

    @tool
    @plain
    async def double(n: int) -> int:
        """Double."""
        return 2 * n

    @tool
    @plain
    async def hang() -> int:
        """Never answer."""
        await asyncio.Event().wait()

    doubled, hung = run(
        [double, hang], ("double", {"n": 2}), ("hang", {}), timeout_s=0.05, attempts=1
    )
    assert doubled.content == "4"
    assert hung.status is ToolStatus.TIMEOUT


def test_p32_blocking_calls_do_not_block_the_event_loop():
    began, release = threading.Event(), threading.Event()

    @tool
    def wait() -> str:
        """Block until the loop has run something else."""
        began.set()
        return "released" if release.wait(5) else "blocked"

    async def free():
        while not began.is_set():
            await asyncio.sleep(0)
        release.set()

    async def both():
        results, _ = await asyncio.gather(ToolRuntime([wait]).run([ToolCall("wait", {})]), free())
        return results

    assert asyncio.run(both())[0].content == "released"


def test_calls_of_an_action_run_together():
    both_there = threading.Barrier(2)

    @tool(attempts=1)
    def meet() -> str:
        """Wait for the other."""
        both_there.wait(10)
        return "met"

    results = run([meet], ("meet", {}), ("meet", {}))
    assert [result.content for result in results] == ["met", "met"]


def test_unknown_tools_and_bad_arguments_are_reported_and_not_retried():
    tries = []

    @tool
    def search(query: str) -> str:
        """Search."""
        tries.append(query)
        return query

    results = run(
        [search], ("serch", {}), ("search", {"q": 1}), ("search", {"query": 1}), ("search", {})
    )
    assert [(result.status, result.content) for result in results] == [
        (
            ToolStatus.UNKNOWN_TOOL,
            "error: there is no tool 'serch'. Did you mean 'search'? Known: search.",
        ),
        (ToolStatus.BAD_ARGUMENTS, "error: search: argument 'query' is missing"),
        (
            ToolStatus.BAD_ARGUMENTS,
            "error: search: argument 'query': Input should be a valid string",
        ),
        (ToolStatus.BAD_ARGUMENTS, "error: search: argument 'query' is missing"),
    ]
    assert tries == []
    (result,) = run([], ("search", {}))
    assert result.content == "error: there is no tool 'search'. There are no tools."


def test_output_over_the_limit_is_cut_and_says_so():
    (result,) = run([echo], ("echo", {"text": "x" * 11}), max_result_chars=10)
    assert result.status is ToolStatus.OVERSIZED
    assert result.content == "x" * 10 + "\n[cut: 10 of 11 characters]"
    assert result.attempts == 1
    (result,) = run([echo], ("echo", {"text": "x" * 10}), max_result_chars=10)
    assert (result.status, result.content) == (ToolStatus.OK, "x" * 10)


def test_error_messages_are_short_and_the_same_in_every_run():
    @tool
    def broken() -> str:
        """Fail."""
        raise ValueError(f"{object()!r}\n" + "x" * 1000)

    one, two = run([broken], ("broken", {}), ("broken", {}))
    assert one.content == two.content
    assert one.content.startswith("error: broken: ValueError: <object object> xxx")
    assert len(one.content) < 250


def test_a_failing_environment_is_not_the_tools_failure():
    ended = []

    @tool
    def lost() -> str:
        """Find the world gone."""
        raise EnvironmentFailure("the simulator died")

    @tool
    def other() -> str:
        """Run beside it."""
        ended.append(1)
        return "x"

    with pytest.raises(EnvironmentFailure, match="the simulator died"):
        run([lost, other], ("lost", {}), ("other", {}))
    assert ended == [1]


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two tools are called 'echo'"):
        ToolRuntime([echo, echo])


def test_unknown_parameters_name_the_nearest():
    with pytest.raises(ParameterError, match="Did you mean 'timeout_s'"):
        ToolParameters.read({"timeouts": 1}, "environment.options")


def test_cancelling_an_action_cancels_its_calls():
    cancelled = []

    async def scenario():
        there = asyncio.Event()

        @tool
        async def slow() -> str:
            """Wait."""
            there.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(1)
                raise
            return "?"

        task = asyncio.ensure_future(ToolRuntime([slow]).run([ToolCall("slow", {})]))
        await there.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert cancelled == [1]

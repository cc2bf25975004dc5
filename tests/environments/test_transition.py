"""The contract between environments and the loop holds whatever the environment does."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from agent_r1.environments import BaseEnv, finish, start, transition
from agent_r1.mdp import (
    Action,
    ActionType,
    EndReason,
    EnvironmentFailure,
    ToolCall,
    ToolStatus,
    Transition,
)
from agent_r1.parameters import ParameterError
from agent_r1.tools import tool

TASK = {"task_id": "t", "prompt": "?", "answers": ["yes"], "payload": '{"hidden": 1}'}
ANSWER = Action(ActionType.ANSWER, "<answer>yes</answer>", answer="yes")
MALFORMED = Action(ActionType.MALFORMED, "hm", error="could not parse: no answer")
CODE = Action(ActionType.MALFORMED, "…", code="print(1)\n", error="could not parse: no answer")
CUT = Action(ActionType.CUT, "hm", error="cut: the turn reached its token limit")


def call(*names, **arguments):
    calls = tuple(ToolCall(name, arguments) for name in names)
    return Action(ActionType.TOOL_CALL, "…", tool_calls=calls)


class Scripted(BaseEnv):
    """An environment that returns or raises what the test gives it."""

    def __init__(self, result, options=None):
        super().__init__(TASK, options=options)
        self.result = result
        self.seen = []

    def reset(self):
        return {"question": "?"}

    def step(self, action):
        self.seen.append(action)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


class AsyncScripted(Scripted):
    async def reset(self):
        return super().reset()

    async def step(self, action):
        return super().step(action)


def act(env, action=None):
    return asyncio.run(transition(env, action or call("x")))


@pytest.mark.parametrize("kind", [Scripted, AsyncScripted])
def test_two_tuples_end_on_an_answer_only(kind):
    env = kind(({"page": "x"}, 0.5))
    assert asyncio.run(start(env)) == {"question": "?"}
    assert act(env) == Transition({"page": "x"}, 0.5)
    assert act(env, ANSWER) == Transition(None, 0.5, terminated=True, end_reason=EndReason.ANSWERED)
    assert env.done


def test_two_tuples_end_when_the_environment_is_done():
    class Game(BaseEnv):
        def reset(self):
            return {"board": "…"}

        def step(self, action):
            self.done = True
            return {"board": "mate"}, 1

    assert act(Game(TASK)) == Transition(
        None, 1.0, terminated=True, end_reason=EndReason.ENVIRONMENT
    )


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((False, False), Transition({"a": 1}, 1.0, info={"n": 2})),
        (
            (True, False),
            Transition(None, 1.0, terminated=True, end_reason=EndReason.ENVIRONMENT, info={"n": 2}),
        ),
        (
            (False, True),
            Transition(
                {"a": 1}, 1.0, truncated=True, end_reason=EndReason.ENVIRONMENT, info={"n": 2}
            ),
        ),
        (
            (True, True),
            Transition(None, 1.0, terminated=True, end_reason=EndReason.ENVIRONMENT, info={"n": 2}),
        ),
    ],
)
def test_gymnasiums_five_tuples(ends, expected):
    assert act(Scripted(({"a": 1}, 1.0, *ends, {"n": np.int64(2)}))) == expected


def test_a_five_tuple_may_continue_after_an_answer():
    env = Scripted(({"a": 1}, 0.0, False, False, {}))
    assert act(env, ANSWER) == Transition({"a": 1}, 0.0)


def test_a_string_is_an_observation():
    assert act(Scripted(("hello", None))) == Transition({"observation": "hello"}, None)


@pytest.mark.parametrize("reward", [0, True, np.float32(1.5), np.int64(2), np.bool_(True)])
def test_rewards_become_floats(reward):
    step = act(Scripted(({"a": 1}, reward)))
    assert type(step.reward) is float
    assert step.reward == float(reward)


@pytest.mark.parametrize(
    "reward",
    [float("nan"), float("inf"), np.float32("nan"), "nan", "1.0", 1e39, 10**400, [1], {}, object()],
)
def test_p34_a_reward_that_is_not_a_finite_number_is_refused(reward):
    step = act(Scripted(({"a": 1}, reward)))
    assert (step.reward, step.truncated, step.end_reason) == (None, True, EndReason.INFRASTRUCTURE)
    assert "reward must be" in step.info["failure"]


@pytest.mark.parametrize(
    "result",
    [
        None,
        {"a": 1},
        ({"a": 1},),
        ({"a": 1}, 0.0, False),
        [{"a": 1}, 0.0],
        (3, 0.0),
        (None, 0.0),
        ({}, 0.0),
        ({"a": 1}, 0.0, False, False, {"x": object()}),
        ({"a": 1}, 0.0, False, False, {"x": float("nan")}),
        ({"a": 1}, 0.0, False, False, [1]),
    ],
)
def test_a_broken_contract_is_an_infrastructure_failure_with_a_message(result):
    step = act(Scripted(result))
    assert (step.observation, step.reward) == (None, None)
    assert (step.terminated, step.truncated) == (False, True)
    assert step.end_reason is EndReason.INFRASTRUCTURE
    assert step.info["failure"]


@pytest.mark.parametrize("kind", [Scripted, AsyncScripted])
@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (EnvironmentFailure("the simulator died"), "the simulator died"),
        (KeyError("board"), "Scripted: KeyError: 'board'"),
        (SystemExit(1), "Scripted: SystemExit: 1"),
        (asyncio.CancelledError(), "Scripted: RuntimeError: the call cancelled itself"),
    ],
)
def test_p31_a_failing_environment_is_recorded_and_unscored(kind, error, failure):
    env = kind(error)
    step = act(env)
    assert (step.reward, step.truncated, step.end_reason) == (None, True, EndReason.INFRASTRUCTURE)
    assert step.info["failure"].endswith(failure)
    assert env.done


@pytest.mark.parametrize(("key", "failure"), [(ValueError("no key"), "no key"), (7, "not int")])
def test_p31_a_state_without_a_key_is_recorded_and_unscored(key, failure):
    class Nameless(Scripted):
        def state_key(self):
            if isinstance(key, Exception):
                raise key
            return key

    step = act(Nameless(({"a": 1}, 1.0)))
    assert (step.reward, step.end_reason) == (None, EndReason.INFRASTRUCTURE)
    assert failure in step.info["failure"]
    over = act(Nameless(({"a": 1}, 1.0, True, False, {})))
    assert (over.reward, over.end_reason) == (1.0, EndReason.ENVIRONMENT)


def test_info_can_be_saved():
    step = act(Scripted(({"a": 1}, 0.0, False, False, {"said": "lone \ud800"})))
    assert step.info == {"said": "lone ?"}


@pytest.mark.parametrize("kind", ["sync", "async", "awaitable"])
def test_p31_an_environment_that_never_returns_is_abandoned(kind):
    never = threading.Event()

    class Stuck(Scripted):
        def step(self, action):
            never.wait()

    class AsyncStuck(Scripted):
        async def step(self, action):
            await asyncio.Event().wait()

    class AwaitableStuck(Scripted):
        def step(self, action):
            return AsyncStuck.step(self, action)

    stuck = {"sync": Stuck, "async": AsyncStuck, "awaitable": AwaitableStuck}[kind]
    env = stuck(None, {"step_timeout_s": 0.02})
    step = act(env)
    never.set()
    assert step.end_reason is EndReason.INFRASTRUCTURE
    assert step.info["failure"].endswith("took longer than 0.02 s")


def test_p32_a_blocking_environment_does_not_block_the_others():
    """Each of the two waits until the other has started."""
    both = threading.Barrier(2)

    class Blocking(Scripted):
        def step(self, action):
            both.wait(10)
            return {"a": 1}, 0.0

    async def scenario():
        return await asyncio.gather(*(transition(Blocking(None), call("x")) for _ in range(2)))

    assert [step.reward for step in asyncio.run(scenario())] == [0.0, 0.0]


@pytest.mark.parametrize("error", [EnvironmentFailure("no world"), ValueError("no world")])
def test_a_failed_reset_is_an_environment_failure(error):
    class Broken(BaseEnv):
        def reset(self):
            raise error

    with pytest.raises(EnvironmentFailure, match="no world"):
        asyncio.run(start(Broken(TASK)))


def test_a_fault_is_logged_with_its_traceback_once_and_not_per_trajectory(caplog):
    class Faulty(BaseEnv):
        def reset(self):
            return {}["world"]

    for _ in range(3):
        with pytest.raises(EnvironmentFailure, match="KeyError"):
            asyncio.run(start(Faulty(TASK)))
    (record,) = caplog.records
    assert record.getMessage().startswith("Faulty failed")
    assert record.exc_info is not None


def test_a_reset_without_an_observation_is_an_environment_failure():
    class Silent(BaseEnv):
        def reset(self):
            return None

    with pytest.raises(EnvironmentFailure, match=r"Silent.reset\(\) returned no observation"):
        asyncio.run(start(Silent(TASK)))


@pytest.mark.parametrize("action", [MALFORMED, CUT])
def test_p29_a_malformed_action_gives_an_error_and_the_episode_continues(action):
    env = Scripted(({"a": 1}, 1.0))
    assert act(env, action) == Transition({"error": action.error}, 0.0)
    assert env.seen == []
    assert act(env).reward == 1.0


def test_code_reaches_the_environment():
    env = Scripted(({"a": 1}, 1.0))
    assert act(env, CODE).reward == 1.0
    assert env.seen == [CODE]


def test_a_transition_needs_an_action():
    with pytest.raises(ValueError, match="an action of the type NONE"):
        act(Scripted(None), Action(ActionType.NONE, ""))


class Shop(BaseEnv):
    def reset(self):
        return {"question": "What is tea?"}

    @tool
    def price(self, item: str) -> str:
        """Look a price up."""
        return f"{item} costs 3"

    @tool
    async def stock(self, item: str) -> str:
        """Look the stock up."""
        return f"{item}: none"


class BiggerShop(Shop):
    @tool
    def price(self, item: str) -> str:
        """Look a better price up."""
        return f"{item} costs 2"

    stock = None

    @tool
    def order(self, item: str) -> str:
        """Order."""
        raise EnvironmentFailure("the shop burnt down")


def test_tools_are_found_on_the_class_and_its_bases():
    assert [spec.name for spec in Shop(TASK).tools] == ["price", "stock"]
    assert [spec.name for spec in BiggerShop(TASK).tools] == ["price", "order"]
    assert BiggerShop(TASK).tools[0].description == "Look a better price up."


def test_p36_the_default_step_runs_all_calls_and_returns_results_in_call_order():
    step = act(Shop(TASK), call("stock", "price", item="tea"))
    assert step.observation == {"tool_results": ["tea: none", "tea costs 3"]}
    assert [result.name for result in step.tool_results] == ["stock", "price"]
    assert (step.reward, step.terminated) == (0.0, False)


def test_tool_results_are_those_of_the_step():
    env = Shop(TASK)
    act(env, call("stock", item="tea"))
    step = act(env, call("price", item=3))
    assert [result.status for result in step.tool_results] == [ToolStatus.BAD_ARGUMENTS]
    assert act(env, MALFORMED).tool_results == ()
    assert act(env, ANSWER) == Transition(None, 0.0, terminated=True, end_reason=EndReason.ANSWERED)


def test_code_is_malformed_if_nothing_executes_it():
    assert act(Shop(TASK), CODE) == Transition({"error": CODE.error}, 0.0)


def test_a_tool_may_fail_the_environment():
    step = act(BiggerShop(TASK), call("order", item="tea"))
    assert step.end_reason is EndReason.INFRASTRUCTURE
    assert step.info == {"failure": "the shop burnt down"}


def test_state_keys_follow_the_observation():
    one, two = Shop(TASK), Shop(TASK)
    for env in (one, two):
        asyncio.run(start(env))
    at_start = one.state_key()
    assert len(at_start) == 64
    assert two.state_key() == at_start
    act(one, call("price", item="tea"))
    assert one.state_key() != at_start
    act(two, call("price", item="tea"))
    assert two.state_key() == one.state_key()
    act(two, MALFORMED)
    assert two.state_key() != one.state_key()


def test_options_are_checked():
    assert Shop(TASK, options={"timeout_s": 3}).options.timeout_s == 3
    with pytest.raises(ParameterError, match=r"'environment.options.attemps'.*'attempts'"):
        Shop(TASK, options={"attemps": 3})


def test_options_reach_the_tools():
    step = act(Shop(TASK, options={"max_result_chars": 3}), call("price", item="tea"))
    assert step.tool_results[0].status is ToolStatus.OVERSIZED


def test_the_payload_is_parsed():
    assert Shop(TASK).payload == {"hidden": 1}
    assert Shop({"prompt": "?"}).payload == {}


def test_an_environment_that_takes_text_gets_every_turn_that_was_not_cut():
    class TextEnv(Scripted):
        takes_text = True

    env = TextEnv(({"a": 1}, 0.5))
    assert act(env, MALFORMED) == Transition({"a": 1}, 0.5)
    assert act(env, CUT).observation == {"error": CUT.error}
    assert env.seen == [MALFORMED]


@pytest.mark.parametrize("fails", [False, True])
def test_an_environment_is_closed_and_a_failure_to_close_is_only_logged(caplog, fails):
    class Held(Scripted):
        async def close(self):
            self.seen.append("closed")
            if fails:
                raise OSError("still held")

    env = Held(None)
    asyncio.run(finish(env))
    assert env.seen == ["closed"]
    assert ("Held did not close: Held: OSError: still held" in caplog.text) == fails

"""Tools and environments inside the loop: order, time limits, faults, mixtures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading

import pytest

from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.environments import BaseEnv
from agent_r1.mdp import ActionType
from agent_r1.parameters import ParameterError
from agent_r1.rollout import TrajectoryRequest, event_loop
from agent_r1.tools import threads, tool
from tests.support.toy_world import (
    ANSWER,
    CALL,
    MALFORMED,
    STOPS,
    ToyEnv,
    requests,
    run,
    scripted,
    task,
)


def test_p29_a_malformed_turn_gives_an_error_and_the_trajectory_continues():
    rollouts, _ = scripted(MALFORMED, ANSWER)
    assert rollouts["action_type"].tolist() == ["malformed", "answer"]
    assert rollouts["observation"][0] == "could not parse: 0 is no call"
    assert rollouts["end_reason"].tolist()[-1] == "answered"


class MixedEnv(ToyEnv):
    """Calls ``echo`` (async, slow) and then ``shout`` (blocking, quick)."""

    async def step(self, action):
        if action.type is ActionType.TOOL_CALL:
            words = [{"word": "first"}, {"word": "second"}, {"word": "third"}]
            names = ("echo", "shout", "echo")
            calls = [type(action.tool_calls[0])(*pair) for pair in zip(names, words, strict=True)]
            action = type(action)(action.type, action.text, tool_calls=tuple(calls))
        return await super().step(action)

    @tool
    def shout(self, word: str) -> str:
        """Say it loud.

        Args:
            word: what to say.
        """
        return word.upper()


def test_p30_results_are_in_call_order(monkeypatch):
    monkeypatch.setattr(ToyEnv, "jitter", random.Random(0))
    rollouts, _ = scripted(CALL, ANSWER, make=MixedEnv)
    contents = [result["content"] for result in json.loads(rollouts["tool_results"][0])]
    assert contents == ["first!", "SECOND", "third!"]
    assert rollouts["observation"][0] == "first!\n\nSECOND\n\nthird!"


class StuckEnv(ToyEnv):
    """Its tool does not return while the test runs."""

    never = threading.Event()

    @tool(timeout_s=0.01, attempts=2)
    def echo(self, word: str) -> str:
        """Wait for what does not come.

        Args:
            word: ignored.
        """
        StuckEnv.never.wait(20)
        return word


def test_p31_a_tool_that_never_returns_is_abandoned_and_recorded():
    try:
        rollouts, _ = scripted(CALL, ANSWER, make=StuckEnv)
    finally:
        StuckEnv.never.set()
    (result,) = json.loads(rollouts["tool_results"][0])
    assert (result["status"], result["attempts"]) == ("timeout", 2)
    assert rollouts["end_reason"].tolist()[-1] == "answered"


class RaisingEnv(ToyEnv):
    def step(self, action):
        raise ZeroDivisionError("a bug in the environment")


def test_p31_an_environment_that_raises_ends_only_its_own_trajectory():
    def make(row):
        return (RaisingEnv if row["task_id"] == "task01" else ToyEnv)(row)

    rollouts, _ = run(wanted=requests(3, 2), make=make, max_steps=3, max_context_tokens=400)
    failed = rollouts[rollouts["task_id"] == "task01"]
    executed = failed[failed["action_type"].isin(["tool_call", "answer"])]
    assert len(executed)
    assert set(executed["end_reason"]) == {"infrastructure"}
    assert executed["env_reward"].isna().all()
    others = rollouts[rollouts["task_id"] != "task01"]
    assert "infrastructure" not in set(others["end_reason"])
    assert others["env_reward"].notna().all()


def test_p31_an_environment_that_cannot_be_made_ends_only_its_own_trajectory():
    class PickyEnv(ToyEnv):
        def __init__(self, row):
            if row["task_id"] == "task01":
                raise KeyError("board")
            super().__init__(row)

    rollouts, _ = run(wanted=requests(3, 1), make=PickyEnv, max_steps=2)
    failed = rollouts[rollouts["task_id"] == "task01"]
    assert failed["end_reason"].tolist() == ["infrastructure"]
    assert json.loads(failed["info"].iloc[0]) == {"failure": "toy: KeyError: 'board'"}
    assert "infrastructure" not in set(rollouts[rollouts["task_id"] != "task01"]["end_reason"])


def test_an_environment_that_did_not_start_is_closed():
    closed = []

    class HalfOpenEnv(ToyEnv):
        def reset(self):
            raise ConnectionError("no simulator")

        def close(self):
            closed.append(self.task["task_id"])

    run(wanted=requests(2, 1), make=HalfOpenEnv)
    assert sorted(closed) == ["task00", "task01"]


def test_p36_two_tools_with_one_name_are_refused_before_sampling():
    class TwiceEnv(ToyEnv):
        @tool(name="echo")
        def other(self, word: str) -> str:
            """Say something else."""
            return "else"

    with pytest.raises(ParameterError, match="'toy' has two tools called 'echo'"):
        run(make=TwiceEnv)


@pytest.mark.parametrize("in_a_loop", [False, True], ids=["script", "notebook"])
def test_p31_a_coroutine_that_ignores_cancellation_does_not_block(monkeypatch, in_a_loop):
    monkeypatch.setattr(event_loop, "CANCEL_S", 0.02)
    monkeypatch.setattr(threads, "CANCEL_S", 0.02)
    over = threading.Event()

    class StubbornEnv(ToyEnv):
        def __init__(self, row):
            super().__init__(row, options={"timeout_s": 0.02, "attempts": 1})

        @tool
        async def echo(self, word: str) -> str:
            """Go on, whatever happens."""
            while not over.is_set():
                with contextlib.suppress(BaseException):
                    await asyncio.sleep(3600)
            return word

    async def notebook():
        return scripted(CALL, ANSWER, make=StubbornEnv)

    ends = []

    def play():
        rollouts, _ = (
            asyncio.run(notebook()) if in_a_loop else scripted(CALL, ANSWER, make=StubbornEnv)
        )
        ends.append(rollouts["end_reason"].tolist()[-1])

    # In a thread, so that a failure does not block the tests.
    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    thread.join(20)
    over.set()
    assert ends == ["answered"]


class BlockingEnv(ToyEnv):
    """Its tool returns when ``everyone`` blocks in it at the same time."""

    everyone = threading.Barrier(6)

    @tool
    def echo(self, word: str) -> str:
        """Wait for the others.

        Args:
            word: what to say.
        """
        BlockingEnv.everyone.wait(timeout=20)
        return word


def test_p32_blocking_tools_of_different_trajectories_run_side_by_side():
    wanted = requests(2, 3)
    script = [[*CALL, STOPS[0]], [*ANSWER, STOPS[0]]]
    engine = ScriptedEngine({one.trajectory_id: script for one in wanted})
    rollouts, _ = run(engine, wanted, make=BlockingEnv)
    statuses = {json.loads(results)[0]["status"] for results in rollouts["tool_results"][::2]}
    assert statuses == {"ok"}


class CountingEnv(BaseEnv):
    """Another environment with a tool of the same name."""

    def reset(self):
        return {"count": 0}

    @tool
    def echo(self, word: str) -> int:
        """How long is it?

        Args:
            word: any.
        """
        return len(word)


def test_p36_two_environments_in_one_run_and_several_tools():
    kinds = {"toy": ToyEnv, "mixed": MixedEnv, "counting": CountingEnv}
    wanted = [
        TrajectoryRequest(name, task(number, environment=name), name, 0, 1.0, number)
        for number, name in enumerate(kinds)
    ]
    script = [[*CALL, STOPS[0]], [*ANSWER, STOPS[0]]]
    engine = ScriptedEngine(dict.fromkeys(kinds, script))
    rollouts, _ = run(engine, wanted, make=lambda row: kinds[row["environment"]](row))
    told = rollouts[rollouts["step_index"] == 0].set_index("environment")["observation"]
    assert told.to_dict() == {
        "toy": "w14-0!",
        "mixed": "first!\n\nSECOND\n\nthird!",
        "counting": "5",
    }

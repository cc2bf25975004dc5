"""Limits of tools: concurrency over all trajectories, backoff, and a budget per trajectory."""

from __future__ import annotations

import asyncio
import json

import pytest

from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.mdp import ToolCall, ToolStatus
from agent_r1.parameters import ParameterError
from agent_r1.tools import ToolParameters, ToolRuntime, tool
from tests.support.toy_world import ANSWER, CALL, STOPS, ToyEnv, requests, run, scripted


class Crowd:
    """Counts how many visitors are inside at the same time."""

    def __init__(self):
        self.inside = self.most = 0

    async def visit(self):
        self.inside += 1
        self.most = max(self.most, self.inside)
        for _ in range(3):
            await asyncio.sleep(0)
        self.inside -= 1


@pytest.mark.parametrize(("own", "general", "most"), [(2, None, 2), (None, 3, 3), (1, 3, 1)])
def test_concurrency_is_counted_over_all_trajectories(own, general, most):
    crowd = Crowd()

    class CrowdedEnv(ToyEnv):
        def __init__(self, row):
            super().__init__(row, options={"concurrency": general})

        @tool(concurrency=own)
        async def echo(self, word: str) -> str:
            """Visit.

            Args:
                word: any.
            """
            await crowd.visit()
            return word

    wanted = requests(3, 2)
    script = [[*CALL, STOPS[0]], [*ANSWER, STOPS[0]]]
    rollouts, _ = run(ScriptedEngine({w.trajectory_id: script for w in wanted}), wanted, CrowdedEnv)
    assert crowd.most == most
    assert set(rollouts["end_reason"].dropna()) == {"answered"}


def test_a_slot_is_free_while_a_call_waits_for_its_next_attempt():
    """There is one slot. While the failing call waits for its retry, the other call runs."""
    order = []

    @tool(concurrency=1)
    async def shaky(name: str) -> str:
        """Fail once for `slow`."""
        order.append(name)
        if order.count("slow") == 1 and name == "slow":
            raise ConnectionError
        return name

    runtime = ToolRuntime([shaky], ToolParameters(backoff_s=0.01))
    calls = [ToolCall("shaky", {"name": name}) for name in ("slow", "quick")]
    results = asyncio.run(runtime.run(calls))
    assert order == ["slow", "quick", "slow"]
    assert [result.content for result in results] == ["slow", "quick"]


def test_backoff_grows_and_is_bounded():
    parameters = ToolParameters(backoff_s=0.5, backoff_factor=3, backoff_max_s=4)
    assert [parameters.backoff(attempt) for attempt in (1, 2, 3, 4)] == [0.5, 1.5, 4, 4]
    assert ToolParameters().backoff(1) == 0


def test_backoff_waits_between_attempts_and_not_after_the_last(monkeypatch):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr("agent_r1.tools.runtime.asyncio.sleep", sleep)

    @tool
    async def broken() -> str:
        """Fail."""
        raise ConnectionError

    runtime = ToolRuntime([broken], ToolParameters(backoff_s=1, attempts=3))
    (result,) = asyncio.run(runtime.run([ToolCall("broken", {})]))
    assert (result.attempts, waits) == (3, [1, 2])


def budgeted(**budget):
    class BudgetEnv(ToyEnv):
        def __init__(self, row):
            super().__init__(row, options={"budget": budget})

    return BudgetEnv


def statuses(rollouts):
    return [[one["status"] for one in json.loads(text)] for text in rollouts["tool_results"]]


TWO_CALLS = [15]


def test_calls_over_the_budget_are_refused_in_call_order_and_end_the_trajectory():
    rollouts, _ = scripted(CALL, TWO_CALLS, ANSWER, make=budgeted(calls=2))
    assert statuses(rollouts) == [["ok"], ["ok", "budget"]]
    last = rollouts.iloc[-1]
    assert (last["truncated"], last["end_reason"], last["env_reward"]) == (True, "tool_budget", 0.0)
    (_, refused) = json.loads(last["tool_results"])
    assert refused["attempts"] == 0
    assert refused["content"] == (
        "error: the tool budget is used up (2 calls): answer without further calls"
    )
    assert list(last["final_token_ids"])  # the state that it stopped in, with the refusal


def test_with_when_spent_tell_the_agent_may_still_answer():
    make = budgeted(calls=1, when_spent="tell")
    rollouts, _ = scripted(CALL, CALL, ANSWER, make=make)
    assert statuses(rollouts) == [["ok"], ["budget"], []]
    assert rollouts["end_reason"].tolist()[-1] == "answered"


def test_a_budget_of_tokens_counts_the_tokens_of_observations():
    """`w14-0!` has 6 tokens in the toy world, and 2 around it."""
    rollouts, _ = scripted(CALL, CALL, CALL, make=budgeted(tokens=16))
    assert [len(ids) for ids in rollouts["context_token_ids"]][1:] == [8, 8]
    assert statuses(rollouts) == [["ok"], ["ok"], ["budget"]]
    assert rollouts["end_reason"].tolist()[-1] == "tool_budget"


def test_a_budget_of_seconds_sums_the_time_of_calls(monkeypatch):
    """The clock ticks at each reading, so each call takes one second."""
    clock = iter(range(1000))
    monkeypatch.setattr("agent_r1.tools.runtime.time.perf_counter", lambda: float(next(clock)))

    @tool
    async def work() -> str:
        """Work."""
        return "done"

    runtime = ToolRuntime([work], ToolParameters(budget={"seconds": 2}))
    call = [ToolCall("work", {})]
    found = [asyncio.run(runtime.run(call))[0].status for _ in range(3)]
    assert found == [ToolStatus.OK, ToolStatus.OK, ToolStatus.BUDGET]
    assert runtime.budget.exhausted == "2 s"


def test_each_trajectory_has_its_own_budget():
    wanted = requests(2, 2)
    script = [[*CALL, STOPS[0]], [*ANSWER, STOPS[0]]]
    engine = ScriptedEngine({one.trajectory_id: script for one in wanted})
    rollouts, _ = run(engine, wanted, budgeted(calls=1))
    assert set(rollouts["end_reason"].dropna()) == {"answered"}


def test_parameters_name_what_is_wrong():
    with pytest.raises(ParameterError, match=r"options\.budget\.call'.* Did you mean 'calls'"):
        ToolParameters.read({"budget": {"call": 1}}, "environment.options")
    with pytest.raises(ParameterError, match=r"options\.budget\.calls"):
        ToolParameters.read({"budget": {"calls": 0}}, "environment.options")

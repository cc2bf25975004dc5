"""A tool that is down for all trajectories: which are affected, what is recorded, and when."""

from __future__ import annotations

import asyncio
import json
import random

import pandas as pd
import pytest

from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.mdp import ToolResult, ToolStatus
from agent_r1.rewards import RewardParameters, rewards_table
from agent_r1.rollout import check_played, replay_with
from agent_r1.rollout.outages import Outages
from agent_r1.tools import BadArguments, tool
from agent_r1.tracking.run_metrics import points
from tests.support.invariants import check_tables
from tests.support.toy_world import (
    ANSWER,
    CALL,
    MALFORMED,
    STOPS,
    ToyEnv,
    parameters,
    requests,
    run,
    tasks_table,
)


def result(status, name="search"):
    return ToolResult(name, ToolStatus(status), f"error: {status}")


def settled(*noted, limit=3):
    """Outages after noting these (trajectory, step, status) and settling once."""
    outages = Outages()
    for trajectory, step, status in noted:
        outages.note(trajectory, step, "qa", [result(status)], limit)
    outages.settle()
    return outages


def test_a_streak_over_all_trajectories_is_an_outage():
    outages = settled(("a", 0, "error"), ("b", 1, "timeout"), ("c", 0, "error"))
    assert outages.unavailable("qa") == {
        "search": "the tool 'search' is down: 3 calls in a row failed, the last with: error: error"
    }
    assert outages.unavailable("other") == {}
    assert [outages.met_by(name).step for name in "abc"] == [0, 1, 0]
    assert outages.met_by("d") is None


@pytest.mark.parametrize("status", ["ok", "oversized"])
def test_a_successful_call_ends_the_streak(status):
    noted = [("a", 0, "error"), ("b", 0, "error"), ("c", 0, status), ("d", 0, "error")]
    assert settled(*noted).unavailable("qa") == {}


@pytest.mark.parametrize("status", ["bad_arguments", "unknown_tool", "budget"])
def test_mistakes_of_the_agent_neither_continue_nor_end_a_streak(status):
    assert settled(*[(name, 0, status) for name in "abcd"]).unavailable("qa") == {}
    noted = [("a", 0, "error"), ("b", 0, "error"), ("c", 0, status), ("d", 0, "error")]
    assert "search" in settled(*noted).unavailable("qa")
    assert settled(*noted).met_by("c") is None


def test_a_trajectory_that_got_unavailable_is_affected_too():
    outages = settled(*[(name, 0, "error") for name in "abc"])
    outages.note("d", 4, "qa", [result("unavailable")], 3)
    outages.note("e", 0, "qa", [result("ok", "other")], 3)
    outages.settle()
    assert outages.met_by("d").step == 4
    assert outages.met_by("e") is None


def test_the_order_in_which_results_arrive_does_not_matter():
    noted = [("a", 0, "ok"), ("b", 0, "error"), ("c", 0, "error"), ("d", 0, "error")]
    for seed in range(5):
        shuffled = random.Random(seed).sample(noted, len(noted))
        outages = settled(*shuffled)
        assert [outages.met_by(name) is not None for name in "abcd"] == [False, True, True, True]


def test_without_a_limit_there_is_no_outage():
    assert settled(*[(str(i), 0, "error") for i in range(99)], limit=None).unavailable("qa") == {}


def concluded(*noted, limit=32):
    outages = Outages()
    for trajectory, step, status in noted:
        outages.note(trajectory, step, "qa", [result(status)], limit)
    outages.conclude()
    return outages


def test_a_tool_without_a_successful_call_was_down_even_after_few_calls():
    outages = concluded(("a", 0, "error"), ("b", 2, "timeout"), ("b", 3, "error"))
    assert "3 calls in a row failed" in outages.unavailable("qa")["search"]
    assert [outages.met_by(name).step for name in "ab"] == [0, 2]


@pytest.mark.parametrize(
    "noted",
    [
        [("a", 0, "error"), ("a", 1, "error")],
        [("a", 0, "ok"), ("b", 0, "error"), ("c", 0, "error")],
        [("a", 0, "error"), ("b", 0, "error"), ("c", 0, "oversized"), ("d", 0, "error")],
        [("a", 0, "bad_arguments"), ("b", 0, "unknown_tool")],
    ],
    ids=["one caller", "answered before", "answered between", "mistakes"],
)
def test_a_tool_that_failed_for_some_trajectories_was_not_down(noted):
    outages = concluded(*noted)
    assert outages.unavailable("qa") == {}
    assert [outages.met_by(name) for name in "abcd"] == [None] * 4


def test_without_a_limit_nothing_is_concluded():
    assert concluded(("a", 0, "error"), ("b", 0, "error"), limit=None).unavailable("qa") == {}


class DownEnv(ToyEnv):
    """Its tool fails for all tasks while ``down`` is set, or only for task 0."""

    down: str = "all"

    def __init__(self, row):
        super().__init__(row, options={"attempts": 2, "unavailable_after": 4})

    @tool
    async def echo(self, word: str) -> str:
        """Say it again.

        Args:
            word: what to say.
        """
        if DownEnv.down == "all" or self.task["task_id"] == DownEnv.down:
            raise ConnectionError("no route")
        if DownEnv.down == "mistakes":
            raise BadArguments("no such word")
        return word


def scripts(wanted, late=()):
    """All call the tool and answer. The late ones make another turn first."""
    stop = STOPS[0]
    plan = [[*CALL, stop], [*ANSWER, stop]]
    return {
        one.trajectory_id: [[*MALFORMED, stop], *plan] if one.task["task_id"] in late else plan
        for one in wanted
    }


def ids_of(wanted, task):
    return [one.trajectory_id for one in wanted if one.task["task_id"] == task]


def play(monkeypatch, down="all", late=(), **limits):
    monkeypatch.setattr(DownEnv, "down", down)
    wanted = requests(3, 2)
    rollouts, timings = run(ScriptedEngine(scripts(wanted, late)), wanted, DownEnv, **limits)
    check_tables(rollouts, timings, parameters(**limits), STOPS)
    return rollouts


def rewards(rollouts: pd.DataFrame) -> dict[str, float | None]:
    terms = RewardParameters.read({"terms": {"environment": {"weight": 1.0}}}, "reward")
    table = rewards_table(rollouts, tasks_table(3), terms).drop_duplicates("trajectory_id")
    totals = table["trajectory_reward"].astype(object)
    return {
        name: None if pd.isna(total) else total
        for name, total in zip(table["trajectory_id"], totals, strict=True)
    }


@pytest.mark.parametrize("deterministic", [True, False])
def test_p12_p31_trajectories_that_met_an_outage_are_not_scored_and_a_warning_says_so(
    monkeypatch, caplog, deterministic
):
    rollouts = play(monkeypatch, deterministic=deterministic)
    assert set(rollouts["end_reason"]) == {"infrastructure"}
    assert rollouts["env_reward"].isna().all()
    assert set(rewards(rollouts).values()) == {None}
    info = json.loads(rollouts["info"][0])
    assert info["unavailable_tool"] == "toy.echo"
    assert info["failure"].startswith("the tool 'echo' is down: 4 calls in a row failed")
    warnings = [one for one in caplog.records if "is not called again" in one.getMessage()]
    assert len(warnings) == 1
    found = {point.name: point.value for point in points("iter_00001.rollouts", rollouts)}
    assert found["rollout/infrastructure_failures"] == 1.0
    assert found["rollout/unavailable_tools"] == 1.0


def test_later_calls_are_refused_without_calling_the_tool(monkeypatch):
    rollouts = play(monkeypatch, late=("task02",))
    last = rollouts[rollouts["task_id"] == "task02"].groupby("trajectory_id").tail(1)
    for results in last["tool_results"]:
        assert json.loads(results) == [
            {
                "name": "echo",
                "status": "unavailable",
                "attempts": 0,
                "content": "error: echo is unavailable",
            }
        ]
    assert set(last["end_reason"]) == {"infrastructure"}


def test_failures_of_a_tool_for_some_trajectories_are_results_and_are_scored(monkeypatch):
    rollouts = play(monkeypatch, down="task00")
    assert set(rewards(rollouts).values()) == {1.0}
    statuses = {json.loads(one)[0]["status"] for one in rollouts["tool_results"] if one != "[]"}
    assert statuses == {"error", "ok"}


@pytest.mark.parametrize("deterministic", [True, False])
def test_p12_p31_few_calls_that_all_fail_are_not_scored(monkeypatch, caplog, deterministic):
    """Two calls fail and there are no others: without a successful call, the tool was down."""
    monkeypatch.setattr(DownEnv, "down", "all")
    wanted = requests(2, 2)
    plans = scripts(wanted) | {name: [[*ANSWER, STOPS[0]]] for name in ids_of(wanted, "task01")}
    rollouts, _ = run(ScriptedEngine(plans), wanted, DownEnv, deterministic=deterministic)
    assert list(rewards(rollouts).values()) == [None, None, 1.0, 1.0]
    assert "the tool 'echo' is down: 2 calls in a row failed" in caplog.text


class HangingEnv(ToyEnv):
    """Its tool never answers, and a step times out before the attempts of a call do."""

    def __init__(self, row):
        limits = {"timeout_s": 0.02, "attempts": 1000, "step_timeout_s": 0.5}
        super().__init__(row, options=limits | {"unavailable_after": 4})

    @tool
    async def echo(self, word: str) -> str:
        """Say it again.

        Args:
            word: what to say.
        """
        await asyncio.Event().wait()
        return word


def test_an_outage_is_found_even_if_the_step_times_out():
    """Many trajectories that wait for a few threads get only this far."""
    wanted = requests(3, 2)
    rollouts, _ = run(ScriptedEngine(scripts(wanted)), wanted, HangingEnv)
    told = [json.loads(info)["unavailable_tool"] for info in rollouts["info"]]
    assert told == ["toy.echo"] * 6
    for results in rollouts["tool_results"]:
        [tried] = json.loads(results)
        assert (tried["status"], 1 <= tried["attempts"] < 1000) == ("timeout", True)
    check_played(rollouts, parameters(), outages_are_data=True)  # the run continues


def test_mistakes_of_all_agents_are_scored(monkeypatch):
    rollouts = play(monkeypatch, down="mistakes")
    assert set(rewards(rollouts).values()) == {1.0}


def test_steps_after_the_outage_are_deleted(monkeypatch):
    """Two trajectories call and answer before the other four call: both answered after an error."""
    rollouts = play(monkeypatch, late=("task01", "task02"))
    assert rollouts.groupby("trajectory_id").size().tolist() == [1, 1, 2, 2, 2, 2]
    assert rollouts["end_reason"].dropna().tolist() == ["infrastructure"] * 6


def test_the_decision_does_not_depend_on_how_long_tools_take(monkeypatch):
    def table(seed):
        monkeypatch.setattr(ToyEnv, "jitter", None if seed is None else random.Random(seed))
        return play(monkeypatch, late=("task01",), concurrency=4)

    expected = table(None)
    assert all(table(seed).equals(expected) for seed in range(3))


def test_a_replay_skips_an_outage(monkeypatch):
    from tests.support.toy_world import ToyChat

    rollouts = play(monkeypatch, late=("task02",))
    monkeypatch.setattr(DownEnv, "down", "none")
    found = replay_with(ToyChat(), DownEnv, rollouts, requests(3, 2), parameters())
    assert found.differences == []
    assert (found.skipped, found.compared, found.matching) == (6, 2, 2)

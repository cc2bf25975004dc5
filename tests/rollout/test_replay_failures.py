"""Replays of records with infrastructure failures, which cannot be repeated."""

from __future__ import annotations

import pytest

from agent_r1 import tables
from agent_r1.mdp import EnvironmentFailure
from tests.support.replays import FIRST, again, columns, scripts, short
from tests.support.toy_world import ANSWER, CALL, MALFORMED, FakeEngine, ToyEnv, requests, run


class FailingEnv(ToyEnv):
    """Its infrastructure is down while ``down`` is set."""

    down = True

    def reset(self):
        if FailingEnv.down and self.task["task_id"] == "task01":
            raise EnvironmentFailure("no simulator")
        return super().reset()

    async def step(self, action):
        if FailingEnv.down and action.text.startswith("14") and self.task["task_id"] == "task00":
            raise EnvironmentFailure("lost it")
        return await super().step(action)


@pytest.fixture
def failures(monkeypatch):
    """Requests and rows: task 0 fails at its second step, task 1 at reset, task 2 not at all."""
    wanted = requests(3, 1)
    table, _ = run(scripts(wanted, MALFORMED, CALL, ANSWER), wanted, FailingEnv)
    monkeypatch.setattr(FailingEnv, "down", False)
    rows = tables.to_arrow(table, "rollouts").to_pylist()
    assert [row["end_reason"] for row in rows][1:3] == ["infrastructure"] * 2
    return wanted, rows


def test_infrastructure_failures_are_skipped_and_do_not_count_as_matching(failures):
    wanted, rows = failures
    found = again(rows, wanted, FailingEnv)
    assert found.differences == []
    assert (found.compared, found.matching, found.skipped) == (4, 4, 2)
    assert found.rollouts.equals(tables.from_rows(rows, "rollouts"))


@pytest.mark.parametrize("row", [1, 2])
@pytest.mark.parametrize("change", [{"env_reward": 0.5}, {"state_key": "x"}, {"action_text": "x"}])
def test_a_recorded_failure_must_look_like_one(failures, row, change):
    wanted, rows = failures
    rows[row] |= change
    found = again(rows, wanted, FailingEnv)
    assert columns(found) == [(rows[row]["trajectory_id"], rows[row]["step_index"], *change)]
    assert found.skipped == 2


def test_only_the_first_step_can_have_failed_before_an_action(failures):
    wanted, rows = failures
    rows[1]["action_type"] = "none"
    assert columns(again(rows, wanted, FailingEnv)) == [(FIRST, 1, "action_type")]


def test_a_step_cannot_be_declared_a_failure():
    wanted, rows = short()
    rows[2]["end_reason"] = "infrastructure"
    found = again(rows, wanted)
    assert columns(found) == [
        (FIRST, 2, column)
        for column in ("env_reward", "terminated", "truncated", "final_token_ids")
    ]
    wanted, rows = short()
    rows[1]["end_reason"] = "infrastructure"
    assert (FIRST, 2, "rows") in columns(again(rows, wanted))


def test_a_cut_action_cannot_be_followed_by_a_failure():
    table, _ = run(FakeEngine(lengths=(30, 30)), max_tokens_per_step=5)
    rows = tables.to_arrow(table, "rollouts").to_pylist()
    rows[0] |= {"end_reason": "infrastructure", "env_reward": None}
    found = again(rows, max_tokens_per_step=5)
    assert columns(found) == [(FIRST, 0, "env_reward"), (FIRST, 0, "end_reason")]

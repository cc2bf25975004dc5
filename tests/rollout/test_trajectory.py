"""The state machine by hand-computed tokens.

Pinned: which tokens are context and which are action, when and why a trajectory ends, and the
values of a row.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from agent_r1.engines.base import Generation
from agent_r1.mdp import Action, ActionType, EndReason, ToolResult, ToolStatus, Transition
from agent_r1.rollout.trajectory import Phase, Trajectory
from tests.support.toy_world import parameters, requests

NOW = datetime(2025, 1, 1, tzinfo=UTC)
ANSWER = Action(ActionType.ANSWER, "42", answer="42")
CALL = Action(ActionType.TOOL_CALL, "echo")
CUT = Action(ActionType.CUT, "ec", error="cut")
GO_ON = Transition({"tool_results": ["x"]}, 0.0)


def new(**limits) -> Trajectory:
    return Trajectory(requests(1, 1)[0], parameters(**limits), "v0")


def act(trajectory: Trajectory, tokens: list[int], action: Action = CALL) -> None:
    reason = "length" if action is CUT else "stop"
    logprobs = [-float(token) for token in tokens]
    known = len(trajectory.stream) - len(trajectory.pending)
    generation = Generation(tokens, logprobs, reason, len(trajectory.stream), known, 5.0)
    trajectory.act(generation, action, NOW)


def test_context_and_action_alternate():
    trajectory = new()
    trajectory.begin([1, 2, 3], "s0")
    assert trajectory.pending == [1, 2, 3]
    act(trajectory, [7, 8])
    assert trajectory.pending == []
    trajectory.observe(GO_ON, "x", [4, 5], "s1")
    assert trajectory.pending == [4, 5]
    act(trajectory, [9], ANSWER)
    trajectory.observe(Transition(None, 1.0, True, False, EndReason.ANSWERED), None, [], "s2")
    assert trajectory.phase is Phase.ENDED
    assert trajectory.stream == [1, 2, 3, 7, 8, 4, 5, 9]
    first, second = trajectory.rows
    assert (first["context_token_ids"], first["action_token_ids"]) == ([1, 2, 3], [7, 8])
    assert (second["context_token_ids"], second["action_token_ids"]) == ([4, 5], [9])
    assert (first["prompt_tokens"], second["prompt_tokens"]) == (3, 7)
    assert (first["context_prefix"], second["context_prefix"]) == (3, 3)
    assert (first["state_key"], second["state_key"]) == ("s0", "s1")
    assert (first["env_reward"], second["env_reward"]) == (0.0, 1.0)
    assert (first["observation"], second["observation"]) == ("x", None)
    assert (first["terminated"], first["truncated"], first["end_reason"]) == (False, False, None)
    assert (second["terminated"], second["truncated"]) == (True, False)
    assert second["end_reason"] == "answered"
    assert second["final_token_ids"] is None
    assert second["action_logprobs"] == [-9.0]
    assert trajectory.timings[1]["cached_tokens"] == 5


def test_p08_a_prompt_without_room_for_an_action_is_one_row_with_a_reason():
    for length, fits in ((9, True), (10, False), (11, False)):
        trajectory = new(max_context_tokens=10)
        trajectory.begin([1] * length, "s0")
        assert (trajectory.phase is Phase.ACTION) == fits
    (row,) = trajectory.rows
    assert (row["action_type"], row["end_reason"]) == ("none", "prompt_too_long")
    assert row["truncated"]
    assert not row["terminated"]
    for column in ("context_token_ids", "action_token_ids", "action_logprobs", "final_token_ids"):
        assert row[column] == []
    assert row["finish_reason"] is None
    assert row["env_reward"] == 0.0
    assert json.loads(row["info"]) == {"prompt_tokens": 11, "max_context_tokens": 10}


def test_p08_the_prompt_is_compared_with_the_context_limit_not_the_action_limit():
    trajectory = new(max_context_tokens=10, max_tokens_per_step=2)
    trajectory.begin([1] * 8, "s0")
    assert trajectory.sampling((3,)).max_tokens == 2


def test_a_failed_reset_is_one_row_without_a_reward():
    trajectory = new()
    trajectory.fail("the simulator is down")
    (row,) = trajectory.rows
    assert (row["action_type"], row["end_reason"]) == ("none", "infrastructure")
    assert row["env_reward"] is None
    assert (row["truncated"], row["terminated"]) == (True, False)
    assert row["info"] == '{"failure": "the simulator is down"}'


def test_p10_step_and_context_limit_the_budget():
    trajectory = new(max_context_tokens=20, max_tokens_per_step=12)
    trajectory.begin([1] * 5, "s0")
    assert trajectory.sampling((3,)).max_tokens == 12
    act(trajectory, [7] * 6)
    trajectory.observe(GO_ON, "x", [4] * 4, "s1")
    assert trajectory.sampling((3,)).max_tokens == 20 - 15


def test_p10_a_cut_action_ends_the_trajectory_with_token_budget():
    trajectory = new(max_tokens_per_step=3)
    trajectory.begin([1], "s0")
    act(trajectory, [7, 7, 7], CUT)
    (row,) = trajectory.rows
    assert (row["action_type"], row["end_reason"]) == ("cut", "token_budget")
    assert row["finish_reason"] == "length"
    assert row["truncated"]
    assert row["final_token_ids"] == []
    assert row["tool_calls"] == "[]"


def test_an_action_that_fills_the_context_is_an_overflow():
    trajectory = new(max_context_tokens=4, max_tokens_per_step=8)
    trajectory.begin([1, 1], "s0")
    assert trajectory.sampling((3,)).max_tokens == 2
    act(trajectory, [7, 7], CUT)
    assert trajectory.rows[0]["end_reason"] == "context_overflow"


@pytest.mark.parametrize(
    ("appended", "reason", "final"),
    [
        ([4] * 4, None, None),  # room for one token
        ([4] * 5, "context_overflow", [4] * 5),
        ([4, 5, 6, 7, 8, 9, 9], "context_overflow", [4, 5, 6, 7, 8]),  # as far as it fits
    ],
)
def test_an_observation_must_leave_room_for_an_action(appended, reason, final):
    trajectory = new(max_context_tokens=10)
    trajectory.begin([1, 1, 1], "s0")
    act(trajectory, [7, 7])
    trajectory.observe(GO_ON, "x", appended, "s1")
    row = trajectory.rows[0]
    assert (row["end_reason"], row["final_token_ids"]) == (reason, final)
    assert row["observation"] == "x"


def test_after_the_last_step_the_observation_is_kept_for_the_value_of_the_last_state():
    trajectory = new(max_steps=2)
    trajectory.begin([1], "s0")
    for step in range(2):
        act(trajectory, [7])
        trajectory.observe(GO_ON, "x", [4, 5 + step], f"s{step + 1}")
    row = trajectory.rows[-1]
    assert (row["end_reason"], row["truncated"]) == ("max_steps", True)
    assert row["final_token_ids"] == [4, 6]


def test_an_answer_on_the_last_step_terminates():
    trajectory = new(max_steps=1)
    trajectory.begin([1], "s0")
    act(trajectory, [7], ANSWER)
    trajectory.observe(Transition(None, 1.0, True, False, EndReason.ANSWERED), None, [], "s1")
    assert (trajectory.rows[0]["terminated"], trajectory.rows[0]["truncated"]) == (True, False)


def test_an_environment_may_truncate_for_its_own_reason():
    trajectory = new()
    trajectory.begin([1], "s0")
    act(trajectory, [7])
    outcome = Transition({"x": "y"}, 0.5, False, True, EndReason.TOOL_BUDGET)
    trajectory.observe(outcome, "y", [4], "s1")
    row = trajectory.rows[0]
    assert (row["end_reason"], row["final_token_ids"]) == ("tool_budget", [4])


def test_a_failing_environment_leaves_the_step_unscored():
    trajectory = new()
    trajectory.begin([1], "s0")
    act(trajectory, [7])
    outcome = Transition(None, None, False, True, EndReason.INFRASTRUCTURE, info={"failure": "x"})
    trajectory.observe(outcome, None, [], "s1")
    row = trajectory.rows[0]
    assert (row["end_reason"], row["env_reward"], row["truncated"]) == (
        "infrastructure",
        None,
        True,
    )
    assert row["final_token_ids"] == []


def test_tool_results_are_recorded_without_their_latency():
    trajectory = new()
    trajectory.begin([1], "s0")
    act(trajectory, [7])
    results = (
        ToolResult("echo", ToolStatus.OK, "é", 1, 12.5),
        ToolResult("echo", ToolStatus.TIMEOUT, "too slow", 3, 30.0),
    )
    outcome = Transition({"tool_results": ["é", "too slow"]}, 0.0, tool_results=results)
    trajectory.observe(outcome, "é\n\ntoo slow", [4], "s1", tool_ms=31.0)
    assert json.loads(trajectory.rows[0]["tool_results"]) == [
        {"name": "echo", "status": "ok", "attempts": 1, "content": "é"},
        {"name": "echo", "status": "timeout", "attempts": 3, "content": "too slow"},
    ]
    timing = trajectory.timings[0]
    assert (timing["tool_ms"], timing["tool_latencies_ms"]) == (31.0, [12.5, 30.0])


def test_p39_each_step_has_its_own_seed():
    trajectory = new(max_steps=6)
    trajectory.begin([1], "s0")
    for step in range(6):
        sampled_with = trajectory.sampling((3,)).seed
        act(trajectory, [7])
        assert trajectory.rows[-1]["seed"] == sampled_with
        trajectory.observe(GO_ON, "x", [4], f"s{step}")
    assert len({row["seed"] for row in trajectory.rows}) == 6


def test_the_state_machine_refuses_calls_in_the_wrong_phase():
    trajectory = new()
    with pytest.raises(RuntimeError, match="in phase context, not action"):
        trajectory.sampling((3,))
    trajectory.begin([1], "s0")
    with pytest.raises(RuntimeError, match="in phase action, not environment"):
        trajectory.observe(GO_ON, "x", [4], "s1")

"""What holds for every rollouts table, whoever made it."""

from __future__ import annotations

import json

import pandas as pd

from agent_r1 import tables
from agent_r1.mdp import ActionType, EndReason, ToolStatus, visible_context
from agent_r1.rollout import RolloutParameters


def check_tables(
    rollouts: pd.DataFrame, timings: pd.DataFrame, parameters: RolloutParameters, stops: tuple
) -> None:
    """Assert all invariants of a table of rollouts and its timings."""
    tables.to_arrow(rollouts, "rollouts")
    tables.to_arrow(timings, "rollout_timings")
    keys = list(zip(rollouts["trajectory_id"], rollouts["step_index"], strict=True))
    assert keys == sorted(set(keys))
    assert keys == list(zip(timings["trajectory_id"], timings["step_index"], strict=True))
    rows = rollouts.to_dict("records")
    by_trajectory: dict[str, list[dict]] = {}
    for row in rows:
        by_trajectory.setdefault(row["trajectory_id"], []).append(row)
    for steps in by_trajectory.values():
        _check_trajectory(steps, parameters)
    for row, timing in zip(rows, timings.to_dict("records"), strict=True):
        _check_row(row, stops)
        assert len(timing["tool_latencies_ms"]) == len(json.loads(row["tool_results"]))
        assert 0 <= timing["cached_tokens"] <= row["prompt_tokens"]


def _check_trajectory(steps: list[dict], parameters: RolloutParameters) -> None:
    assert [row["step_index"] for row in steps] == list(range(len(steps)))
    assert len(steps) <= parameters.max_steps
    # It ends exactly once, on its last row.
    for row in steps[:-1]:
        assert not row["terminated"]
        assert not row["truncated"]
        assert pd.isna(row["end_reason"])
        assert row["final_token_ids"] is None
        assert row["observation"]
    last = steps[-1]
    assert last["terminated"] != last["truncated"]
    assert last["end_reason"] in set(EndReason)
    assert (last["final_token_ids"] is not None) == last["truncated"]
    # The stream only grows: each prompt is the one before, the action, and what came after.
    # What is seen of it never lacks the prompt, begins with a whole step, and fits.
    stream: list[int] = []
    starts = [0]
    begins = {0}
    for row in steps:
        stream += list(row["context_token_ids"])
        prefix, start = row["context_prefix"], row["context_start"]
        assert prefix == len(steps[0]["context_token_ids"])
        assert start >= starts[-1]
        assert start in begins
        assert row["context_drops"] is None
        assert row["prompt_tokens"] == len(visible_context(stream, prefix, start))
        starts.append(start)
        begins.add(len(stream))
        stream += list(row["action_token_ids"])
        end = list(last["final_token_ids"]) if row is last and last["truncated"] else []
        assert len(visible_context(stream + end, prefix, start)) <= parameters.max_context_tokens
    if parameters.on_overflow != "window":
        assert set(starts) == {0}
    constant = ("task_id", "group_id", "sample_index", "environment", "policy_version")
    for column in (*constant, "temperature"):
        assert len({row[column] for row in steps}) == 1
    assert len({row["seed"] for row in steps}) == len(steps)


def _check_row(row: dict, stops: tuple) -> None:
    action = list(row["action_token_ids"])
    assert len(row["action_logprobs"]) == len(action) == row["completion_tokens"]
    calls, results = json.loads(row["tool_calls"]), json.loads(row["tool_results"])
    kind = ActionType(row["action_type"])
    if kind is ActionType.NONE:
        assert action == []
        assert list(row["context_token_ids"]) == []
        assert row["finish_reason"] is None
        return
    assert action
    # Stop tokens are sampled, last, and only in actions that were not cut.
    assert (action[-1] in stops) == (row["finish_reason"] == "stop") == (kind is not ActionType.CUT)
    assert not set(action[:-1]) & set(stops)
    assert bool(calls) == (kind is ActionType.TOOL_CALL)
    assert all(result["status"] in set(ToolStatus) for result in results)
    if row["end_reason"] != EndReason.INFRASTRUCTURE:
        assert [call["name"] for call in calls] == [result["name"] for result in results]

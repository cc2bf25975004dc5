"""Replays in the toy world: an untouched record matches, and each change in a record is named.

`test_replay_failures.py` tests infrastructure failures, and `test_replay_searches.py` a real
environment.
"""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.rollout import TrajectoryRequest
from agent_r1.tables.differences import Difference
from tests.support.replays import FIRST, again, columns, short
from tests.support.toy_world import STOPS, FakeEngine, ToyEnv, requests, run, task


@settings(max_examples=30)
@given(
    st.builds(
        dict,
        max_steps=st.sampled_from([1, 2, 3, 4, 5, 40]),
        max_tokens_per_step=st.integers(1, 10),
        max_context_tokens=st.integers(11, 120),
        on_overflow=st.sampled_from(["truncate", "end", "window"]),
        window_keep=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        concurrency=st.integers(1, 20),
        deterministic=st.booleans(),
    ),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_an_untouched_table_matches(limits, count, samples):
    """For all ends of trajectories: answered, cut, out of steps or context, or not begun at all."""
    wanted = requests(count, samples)
    table, _ = run(wanted=wanted, **limits)
    found = again(table, wanted, **limits)
    assert found.differences == []
    assert (found.compared, found.matching, found.skipped) == (len(table), len(table), 0)
    assert found.rollouts.equals(table)


@pytest.mark.parametrize("concurrency", [1, 5, 100])
@pytest.mark.parametrize("deterministic", [True, False])
def test_the_number_of_concurrent_replays_does_not_matter(monkeypatch, concurrency, deterministic):
    table, _ = run()
    monkeypatch.setattr(ToyEnv, "jitter", random.Random(0))
    found = again(table, concurrency=concurrency, deterministic=deterministic)
    assert found.differences == []
    assert found.compared == len(table)


def test_prompts_of_different_lengths_in_a_group_are_replayed():
    """Two members share a prompt, the third has its own."""
    wanted = requests(1, 2)
    odd = TrajectoryRequest("iter_00001/task00/2", task(0, "another"), wanted[0].group_id, 2, 1, 3)
    wanted = [*wanted, odd]
    table, _ = run(wanted=wanted)
    assert again(table, wanted).differences == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("observation", "w14-0?"),
        ("observation", None),
        ("env_reward", 1.0),
        ("env_reward", None),
        ("tool_results", "[]"),
        ("tool_calls", "[]"),
        ("action_text", "14 4"),
        ("action_type", "answer"),
        ("action_logprobs", [0.0]),
        ("action_logprobs", [0.0] * 3),
        ("end_reason", "answered"),
        ("terminated", True),
        ("truncated", True),
        ("final_token_ids", []),
        ("finish_reason", "length"),
        ("finish_reason", None),
        ("context_token_ids", [1, 2, 3]),
        ("context_prefix", 1),
        ("context_start", 1),
        ("context_drops", [0, 1]),
        ("prompt_tokens", 1),
        ("completion_tokens", 1),
        ("state_key", "other"),
        ("info", '{"a": 1}'),
        ("media", "[]"),
        ("seed", 1),
        ("task_id", "unknown"),
        ("group_id", "other"),
        ("sample_index", 7),
        ("temperature", 0.0),
        ("environment", "other"),
        ("policy_version", "other"),
    ],
)
def test_only_the_changed_value_is_named(column, value):
    wanted, rows = short()
    before = rows[3][column]
    rows[3][column] = value
    found = again(rows, wanted)
    (difference,) = found.differences
    assert (difference.trajectory_id, difference.step_index) == ("iter_00001/task00/1", 0)
    assert difference.column == column
    assert difference.recorded == value
    if column != "action_logprobs":
        assert difference.replayed == before
    assert (found.compared, found.matching, found.skipped) == (12, 11, 0)


@pytest.mark.parametrize("column", ["end_reason", "terminated", "truncated", "final_token_ids"])
def test_the_end_of_a_trajectory_is_compared(column):
    wanted, rows = short()
    rows[2][column] = {"end_reason": "max_steps", "final_token_ids": [1]}.get(
        column, not rows[2][column]
    )
    assert columns(again(rows, wanted)) == [(FIRST, 2, column)]


def test_there_must_be_one_log_prob_per_token():
    wanted, rows = short()
    rows[0]["action_logprobs"] = [0.0]
    (line,) = map(str, again(rows, wanted).differences)
    assert line == (
        f"{FIRST}, step 0, action_logprobs: "
        "recorded [0.0] (1 values), replayed [0.0, nan] (2 values)"
    )


def test_another_action_shows_in_its_consequences():
    wanted, rows = short()
    rows[0]["action_token_ids"] = [18, STOPS[0]]  # another call
    found = again(rows, wanted)
    here = [column for name, step, column in columns(found) if (name, step) == (FIRST, 0)]
    assert here == ["action_text", "tool_calls", "tool_results", "observation"]
    assert {name for name, _, _ in columns(found)} == {FIRST}
    assert (FIRST, 1, "context_token_ids") in columns(found)


@pytest.mark.parametrize(
    "tokens", [[], [14], [14, 3, 14], [14, -1, 3], [14] * 300, [2**31 - 1, 3], [None, 3]]
)
def test_tokens_that_no_engine_samples_are_found_without_an_error(tokens):
    wanted, rows = short()
    rows[0]["action_token_ids"] = tokens
    found = again(rows, wanted)
    assert {name for name, _, _ in columns(found)} == {FIRST}
    assert found.matching >= 9


def test_a_removed_step_is_named():
    wanted, rows = short()
    del rows[1]
    # The replay cannot reach the steps after the hole.
    assert columns(again(rows, wanted)) == [(FIRST, 1, "rows"), (FIRST, 2, "rows")]
    del rows[1]
    found = again(rows, wanted)
    assert found.differences == [Difference(FIRST, 1, "rows", 0, 1)]
    assert (found.compared, found.matching) == (11, 10)


def test_a_removed_trajectory_is_named():
    wanted, rows = short()
    found = again(rows[3:], wanted)
    assert found.differences == [Difference(FIRST, 0, "rows", 0, 1)]


def test_an_invented_trajectory_or_step_is_named():
    wanted, rows = short()
    invented = [row | {"trajectory_id": "iter_00001/task09/0"} for row in rows[:1]]
    found = again([*rows, *invented], wanted)
    assert found.differences == [Difference("iter_00001/task09/0", 0, "rows", 1, 0)]
    longer = [*rows[:3], rows[2] | {"step_index": 3}, *rows[3:]]
    assert again(longer, wanted).differences == [Difference(FIRST, 3, "rows", 1, 0)]


def test_a_duplicated_row_is_named():
    wanted, rows = short()
    found = again([*rows[:2], *rows[1:]], wanted)
    assert found.differences == [Difference(FIRST, 1, "rows", 2, 1)]
    assert (found.compared, found.matching) == (12, 11)


def test_swapped_rows_are_named():
    wanted, rows = short()
    rows[0], rows[4] = rows[4], rows[0]
    assert again(rows, wanted).differences == [
        Difference(FIRST, 0, "position", 4, 0),
        Difference("iter_00001/task00/1", 1, "position", 0, 4),
    ]


def test_exchanged_actions_of_two_trajectories_are_found():
    """Their rows differ only in the seeds, and seeds come from the requests."""
    wanted, rows = short()
    for one, other in zip(rows[:3], rows[3:6], strict=True):
        one["seed"], other["seed"] = other["seed"], one["seed"]
    assert {column for _, _, column in columns(again(rows, wanted))} == {"seed"}


def test_the_list_of_trajectories_does_not_come_from_the_record():
    wanted, rows = short()
    changed = [row | {"temperature": 0.0, "task_id": "task01"} for row in rows[:3]]
    found = again([*changed, *rows[3:]], wanted)
    assert columns(found) == [
        (FIRST, step, column) for step in range(3) for column in ("task_id", "temperature")
    ]


def test_the_version_of_the_policy_may_be_given():
    wanted, rows = short()
    assert again(rows, wanted, version="scripted").differences == []
    found = again(rows, wanted, version="abc")
    assert {column for _, _, column in columns(found)} == {"policy_version"}
    assert (found.compared, found.matching) == (12, 0)


def test_differences_are_sorted():
    wanted, rows = short()
    for row in rows:
        row["env_reward"] += 1
        row["info"] = "{ }"
    expected = columns(again(rows, wanted))
    assert expected == sorted(expected)
    assert len(expected) == 2 * len(rows)
    for limits in ({"concurrency": 1}, {"deterministic": False}):
        assert columns(again(rows, wanted[::-1], **limits)) == expected


def test_nondeterministic_environments_are_found():
    class Moody(ToyEnv):
        async def step(self, action):
            observation, reward = await super().step(action)
            return observation, reward + 1

    wanted, rows = short()
    found = again(rows, wanted, Moody)
    # A turn that could not be parsed does not reach the environment.
    assert {step for _, step, _ in columns(found)} == {0, 2}
    assert {column for _, _, column in columns(found)} == {"env_reward"}


def test_an_environment_that_fails_now_is_a_difference():
    wanted, rows = short()
    broken = [dataclasses.replace(wanted[0], task=task(0, prompt="broken")), *wanted[1:]]
    found = again(rows, broken)
    assert (FIRST, 0, "end_reason") in columns(found)
    assert {name for name, _, _ in columns(found)} == {FIRST}


def test_no_rollouts_and_progress():
    found = again(run(wanted=[])[0], [])
    assert (found.compared, found.matching, found.skipped, found.differences) == (0, 0, 0, [])
    calls = []
    table, _ = run(FakeEngine())
    again(table, on_progress=lambda *numbers: calls.append(numbers))
    assert calls[-1] == (12, 12, table["completion_tokens"].sum())

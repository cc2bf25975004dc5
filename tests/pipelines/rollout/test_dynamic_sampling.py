"""Dynamic sampling: which groups are dropped, what replaces them, and what is recorded.

Everything is real but the policy, which answers as a plan says: a letter per attempt, ``r`` for a
right and ``w`` for a wrong answer, and the groups in the order in which their tasks are drawn. A
right answer earns 1.1 and a wrong one 0.1, with the rewards of ``conf/base``.
"""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest

from agent_r1 import schemas, tables
from agent_r1.chat import ChatParameters, load_tokenizer, make_format
from agent_r1.display import progress
from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.environments import EnvironmentParameters
from agent_r1.environments.multihop_qa import MultihopQAEnv
from agent_r1.mdp import Action, ActionType, EnvironmentFailure
from agent_r1.parameters import ParameterError
from agent_r1.pipelines.reward.nodes import score_rewards
from agent_r1.pipelines.rollout.dynamic_sampling import (
    GroupOutcome,
    SampledGroup,
    group_outcomes,
    sampled_again,
)
from agent_r1.pipelines.rollout.nodes import rollout_requests, task_order
from agent_r1.rollout import (
    BrokenEnvironmentError,
    RolloutParameters,
    group_requests,
    replay_trajectories,
    run_trajectories,
    select_tasks,
)
from agent_r1.storage.hashing import folder_sha256
from agent_r1.tables.differences import compare_tables
from tests.support.nodes import generate_rollouts

ITERATION = "iter_00002"
COUNT = 12


def rollout(rounds=4, **changes):
    limits = {"max_tokens_per_step": 60, "max_context_tokens": 2000}
    dynamic = {"enabled": rounds > 0, "max_rounds": max(rounds, 1)}
    shape = {"tasks_per_iteration": 3, "group_size": 2}
    return RolloutParameters(**(limits | shape | {"dynamic_sampling": dynamic} | changes))


@pytest.fixture
def tasks():
    rows = [
        {
            "task_id": f"t{number:02d}",
            "environment": "multihop_qa",
            "split": "train" if number < COUNT else "held_out",
            "family": "toy",
            "prompt": f"What is number {number}?",
            "answers": ["right"],
            "hops": 1,
            "payload": "{}",
        }
        for number in range(COUNT + 2)
    ]
    return tables.from_rows(rows, "tasks")


def drawn(tasks, parameters):
    return task_order(tasks, parameters, 0, ITERATION)["task_id"].tolist()


@pytest.fixture
def play(policy_folder, tasks, documents):
    """What the node gives if its policy follows the plan."""
    chat = make_format(ChatParameters(), load_tokenizer(policy_folder))
    texts = {"r": "right", "w": "wrong"}

    def play(plan, parameters=None, reward=None, table=tasks):
        parameters = parameters or rollout()
        scripts = {
            f"{ITERATION}/{task}/{sample}": [
                chat.render_action(Action(ActionType.ANSWER, "", answer=texts[letter]))
            ]
            for task, letters in zip(drawn(table, parameters), plan, strict=False)
            for sample, letter in enumerate(letters)
        }
        engine = ScriptedEngine(scripts, version=folder_sha256(policy_folder))
        return generate_rollouts(
            engine, policy_folder, table, documents, [], parameters, {}, {}, reward or {}, 0,
            iteration=ITERATION,
        )  # fmt: skip

    return play


PLAN = ["rr", "rw", "ww", "wr", "ww", "rw"]
"""Of three groups that are wanted, round 1 has one with a signal, round 2 another, round 3 the last
one."""


def test_groups_without_a_signal_are_replaced_and_all_are_recorded(play, tasks):
    rollouts, timings, groups = play(PLAN)
    order = drawn(tasks, rollout())
    kept = [f"{ITERATION}/{order[place]}" for place in (1, 3, 5)]
    assert sorted(set(rollouts["group_id"])) == sorted(kept)
    assert len(rollouts) == 6
    keys = ["trajectory_id", "step_index"]
    pd.testing.assert_frame_equal(timings[keys], rollouts[keys])
    ids = rollouts["trajectory_id"].tolist()
    assert ids == sorted(ids)
    high, low = np.float32(1.1), np.float32(0.1)
    tokens = rollouts.groupby("group_id")["completion_tokens"].sum()
    mixed = {"reason": None, "kept": True, "mean_reward": np.float32(0.6), "scored": 2}
    same = {"reason": "no_variance", "kept": False, "scored": 2}
    expected = [
        {"round": 1, "rewards": [high, high], "mean_reward": high} | same,
        {"round": 1, "rewards": [high, low]} | mixed,
        {"round": 1, "rewards": [low, low], "mean_reward": low} | same,
        {"round": 2, "rewards": [low, high]} | mixed,
        {"round": 2, "rewards": [low, low], "mean_reward": low} | same,
        {"round": 3, "rewards": [high, low]} | mixed,
    ]
    rows = tables.to_arrow(groups, "sampled_groups").to_pylist()
    for row, wanted, task in zip(rows, expected, order, strict=False):
        assert (row["group_id"], row["task_id"]) == (f"{ITERATION}/{task}", task)
        # Both answers have as many tokens.
        assert row["completion_tokens"] == tokens[kept[0]] > 0
        assert {name: row[name] for name in wanted} == wanted
    assert len(rows) == len(expected)


def test_what_is_recorded_of_a_kept_group_is_what_score_rewards_says(play, tasks):
    rollouts, _, groups = play(PLAN)
    rewards = score_rewards(rollouts, tasks, {}).assign(group=rollouts["group_id"])
    for row in groups[groups["kept"].astype(bool)].to_dict("records"):
        own = rewards[rewards["group"] == row["group_id"]]["trajectory_reward"]
        assert list(row["rewards"]) == own.tolist()


def test_a_round_that_has_all_it_wants_is_the_last(play, caplog):
    rollouts, _, groups = play(["rw", "wr", "rw"])
    without, _, none = play(["rw", "wr", "rw"], rollout(rounds=0))
    pd.testing.assert_frame_equal(rollouts, without)
    assert groups["round"].tolist() == [1, 1, 1]
    assert none.empty
    assert list(none) == schemas.SAMPLED_GROUPS.names
    assert caplog.records == []


def test_off_is_what_it_was_before(play, tasks, policy_folder, documents):
    """Requests, seeds and rows, made here as the node made them before it could sample."""
    parameters = rollout(rounds=0)
    chosen = select_tasks(tables.conform(tasks, "tasks"), 3, 1, 0)
    wanted = group_requests(chosen, ITERATION, [1.0, 1.0], 0, "generate_rollouts")
    assert rollout_requests(tasks, parameters, 0, ITERATION) == wanted
    assert [(one.trajectory_id, one.seed) for one in wanted] == PINNED
    chat = make_format(ChatParameters(), load_tokenizer(policy_folder))
    right = chat.render_action(Action(ActionType.ANSWER, "", answer="right"))
    version = folder_sha256(policy_folder)
    engine = ScriptedEngine({one.trajectory_id: [right] for one in wanted}, version)
    groups = (parameters, EnvironmentParameters(), ChatParameters())
    before, _ = run_trajectories(engine, policy_folder, wanted, documents, *groups)
    rollouts, _, _ = play(["rr", "rr", "rr"], parameters)
    pd.testing.assert_frame_equal(rollouts, before)


PINNED = [
    ("iter_00002/t06/0", 7829517175275423592),
    ("iter_00002/t06/1", 8813372194014824579),
    ("iter_00002/t09/0", 4611504583460030704),
    ("iter_00002/t09/1", 1891804112239421648),
    ("iter_00002/t10/0", 4362958357084233100),
    ("iter_00002/t10/1", 1011857638332897747),
]
"""Trajectories and seeds as the code drew them before there was dynamic sampling."""


def test_p33_rounds_are_bounded_and_then_it_says_so(play, caplog):
    with caplog.at_level(logging.WARNING):
        rollouts, _, groups = play(["rr", "rw", "ww", "wr", *["ww"] * 8], rollout(rounds=3))
    assert groups["round"].tolist() == [1, 1, 1, 2, 2, 3]
    assert groups["kept"].tolist() == [False, True, False, True, False, False]
    assert rollouts["group_id"].nunique() == 2
    assert caplog.messages == [
        f"{ITERATION}: dynamic sampling found 2 of 3 groups whose rewards differ, in 3 rounds and "
        "6 groups; it trains on these. See its table sampled_groups; more rounds are allowed by "
        "rollout.dynamic_sampling.max_rounds"
    ]


def test_p33_without_any_signal_the_first_batch_is_kept(play, caplog):
    with caplog.at_level(logging.WARNING):
        rollouts, _, groups = play(["ww"] * COUNT, rollout(rounds=2))
    without, _, _ = play(["ww"] * COUNT, rollout(rounds=0))
    pd.testing.assert_frame_equal(rollouts, without)
    assert groups["kept"].tolist() == [True] * 3 + [False] * 3
    assert set(groups["reason"]) == {"no_variance"}
    assert "keeps its first batch, which teaches nothing" in caplog.text


def test_p33_when_all_tasks_were_played_it_says_so(play, caplog):
    plan = ["rw", *["ww"] * (COUNT - 1)]
    with caplog.at_level(logging.WARNING):
        _, _, groups = play(plan, rollout(rounds=100))
    assert groups["round"].tolist() == [1] * 3 + [2] * 2 + [3] * 2 + [4] * 2 + [5] * 2 + [6]
    assert groups["task_id"].is_unique
    assert "all training tasks were played: lower rollout.tasks_per_iteration" in caplog.text


@pytest.mark.parametrize(
    ("rewards", "reason"),
    [
        ((1.0, 0.0), None),
        ((1.0, None, 0.0), None),
        ((1.0, None, 1.0), "no_variance"),
        ((1.0, 1.0000001, 1.0), "no_variance"),
        ((0.0, None), "too_few_scored"),
        ((None, None), "too_few_scored"),
        ((), "too_few_scored"),
    ],
)
def test_p12_p13_what_is_not_scored_is_no_signal_and_neither_is_noise(rewards, reason):
    assert SampledGroup("t", 1, GroupOutcome(rewards, 0)).reason == reason


def test_p12_a_failed_trajectory_is_null_in_the_record(play, tasks, monkeypatch):
    reset, broken = MultihopQAEnv.reset, drawn(tasks, rollout())[0]

    def flaky(self):
        if self.task["task_id"] == broken:
            raise EnvironmentFailure("the database is down")
        return reset(self)

    monkeypatch.setattr(MultihopQAEnv, "reset", flaky)
    rollouts, _, groups = play(["", "rw", "rw", "rw"])
    first = tables.to_arrow(groups, "sampled_groups").to_pylist()[0]
    assert (first["rewards"], first["scored"], first["mean_reward"]) == ([None, None], 0, None)
    assert (first["kept"], first["reason"]) == (False, "too_few_scored")
    assert "infrastructure" not in set(rollouts["end_reason"])


def test_an_environment_that_fails_in_all_of_the_first_round_stops_the_run(play, monkeypatch):
    def broken(self):
        raise EnvironmentFailure("the database is down")

    monkeypatch.setattr(MultihopQAEnv, "reset", broken)
    with pytest.raises(BrokenEnvironmentError, match="failed in all 6 trajectories"):
        play(PLAN)


def test_the_rewards_decide_and_they_are_those_of_the_parameters(play):
    """A right and a wrong answer are both well-formed: for the format alone they are equal."""
    plan = ["rw", "rw", "rw", *["rr"] * 9]
    assert play(plan)[2]["kept"].tolist() == [True] * 3
    only_format = {"terms": {"format": {"weight": 0.5}}}
    _, _, groups = play(plan, rollout(rounds=2), only_format)
    assert set(groups["reason"]) == {"no_variance"}
    assert groups["mean_reward"].tolist() == [0.5] * 6


@pytest.mark.parametrize("changes", [{"concurrency": 1}, {"deterministic": False}])
def test_it_is_a_function_of_its_inputs(play, tasks, changes):
    """Not of how many trajectories run together, nor of the order of the tasks table."""
    expected = play(PLAN)
    shuffled = tasks.sample(frac=1, random_state=3)
    for found in (play(PLAN, rollout(**changes)), play(PLAN, table=shuffled)):
        for name, place in (("rollouts", 0), ("sampled_groups", 2)):
            assert compare_tables(expected[place], found[place], name) == []


def test_p39_no_two_trajectories_of_all_rounds_have_an_id_or_a_seed_in_common(play, tasks):
    _, _, groups = play(["ww"] * COUNT, rollout(rounds=3))
    chosen = tables.conform(tasks, "tasks").set_index("task_id", drop=False)
    order = chosen.loc[groups["task_id"]].reset_index(drop=True)
    wanted = group_requests(order, ITERATION, [1.0, 1.0], 0, "generate_rollouts")
    assert len({one.trajectory_id for one in wanted}) == len({one.seed for one in wanted}) == 18


def test_progress_counts_over_all_rounds(play, monkeypatch):
    calls = []
    monkeypatch.setattr(progress, "reporter", lambda: lambda *numbers: calls.append(numbers))
    play(PLAN)
    assert {total for _, total, _ in calls} == {6, 10, 12}
    assert calls[-1][:2] == (12, 12)
    assert all(done <= total for done, total, _ in calls)
    for one in (0, 1, 2):
        assert [call[one] for call in calls] == sorted(call[one] for call in calls)


def test_groups_of_one_are_refused(tasks):
    with pytest.raises(ParameterError, match="set group_size to 2 or more"):
        RolloutParameters.read({"group_size": 1, "dynamic_sampling": {"enabled": True}}, "rollout")
    with pytest.raises(ParameterError, match="Did you mean 'max_rounds'"):
        RolloutParameters.read({"dynamic_sampling": {"max_round": 1}}, "rollout")


# ----------------------------------------------------------------------------------------- replay


def again(groups, rollouts, tasks):
    """The differences of the recorded groups to what the rounds give again."""
    parameters = rollout()
    played = group_outcomes(rollouts, score_rewards(rollouts, tasks, {}))
    order = task_order(tasks, parameters, 0, ITERATION)
    expected = sampled_again(groups, order, parameters, played, ITERATION)
    return compare_tables(groups, expected, "sampled_groups")


def test_a_replay_finds_what_was_recorded(play, tasks, policy_folder, documents):
    rollouts, _, groups = play(PLAN)
    wanted = rollout_requests(tasks, rollout(), 0, ITERATION, groups)
    found = replay_trajectories(
        rollouts, wanted, documents, policy_folder, rollout(), {}, {}, folder_sha256(policy_folder)
    )
    assert found.differences == []
    assert found.matching == len(rollouts) == 6
    assert again(groups, found.rollouts, tasks) == []


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [(0, "kept", True), (1, "kept", False), (0, "reason", None), (2, "round", 2),
     (1, "rewards", [1.0, 0.0]), (1, "scored", 1), (1, "mean_reward", 0.5),
     (1, "completion_tokens", 1)],
)  # fmt: skip
def test_a_value_that_was_changed_is_named(play, tasks, row, column, value):
    rollouts, _, groups = play(PLAN)
    rows = tables.to_arrow(groups, "sampled_groups").to_pylist()
    rows[row][column] = value
    (found,) = again(tables.from_rows(rows, "sampled_groups"), rollouts, tasks)
    assert (found.trajectory_id, found.column) == (groups["group_id"][row], column)
    assert str(found).startswith(f"{groups['group_id'][row]}, {column}: recorded ")


def test_a_dropped_group_that_was_removed_is_named(play, tasks):
    rollouts, _, groups = play(PLAN)
    (found,) = again(groups.drop(index=[0]), rollouts, tasks)
    assert (found.trajectory_id, found.column) == (groups["group_id"][0], "rows")
    assert (found.recorded, found.replayed) == (0, 1)


def test_rewards_of_a_dropped_group_that_would_have_been_a_signal_are_found(play, tasks):
    """Then it would have been kept, and others would not have been drawn."""
    rollouts, _, groups = play(PLAN)
    rows = tables.to_arrow(groups, "sampled_groups").to_pylist()
    rows[0]["rewards"] = [1.0, 0.0]
    found = again(tables.from_rows(rows, "sampled_groups"), rollouts, tasks)
    named = {(one.trajectory_id, one.column) for one in found}
    assert {(groups["group_id"][0], "kept"), (groups["group_id"][5], "rows")} <= named

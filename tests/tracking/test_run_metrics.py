"""Which numbers become curves, with hand-computed values."""

from __future__ import annotations

import pytest

from agent_r1 import schemas, tables
from agent_r1.tracking.run_metrics import points
from tests.support.step_tables import rollouts, step


def values(dataset, table):
    return {(point.name, point.step): point.value for point in points(dataset, table)}


def reward(trajectory, step, total, correct):
    row = {"trajectory_id": trajectory, "step_index": step, "reward": total, "components": "{}"}
    return row | {"trajectory_reward": total, "correct": correct}


def test_p12_p40_rewards_are_means_over_scored_trajectories():
    table = tables.from_rows(
        [reward("a", 0, 1.0, True), reward("a", 1, 1.0, True), reward("b", 0, 0.0, False),
         reward("c", 0, None, None)],
        "rewards",
    )  # fmt: skip
    assert values("iter_00001.rewards", table) == {
        ("reward/mean", 0): 0.5,  # not 2/3: `a` has two rows; not 1/3: `c` is not a zero
        ("reward/std", 0): 0.5,
        ("reward/unscored", 0): pytest.approx(1 / 3),
        ("reward/correct", 0): 0.5,
    }


def test_nothing_scored_has_no_mean():
    table = tables.from_rows([reward("a", 0, None, None)], "rewards")
    assert values("iter_00001.rewards", table) == {("reward/unscored", 0): 1.0}


def test_p40_dynamic_sampling_is_counted_in_groups():
    def group(number, reason, kept):
        known = {"group_id": f"g{len(rows)}", "task_id": "t", "rewards": [], "scored": 2}
        rows.append(
            known | {"round": number, "reason": reason, "kept": kept, "completion_tokens": 5}
        )

    rows = []
    for case in ((1, None, True), (1, "no_variance", False), (1, "no_variance", False),
                 (2, None, True), (2, "too_few_scored", False)):  # fmt: skip
        group(*case)
    table = tables.from_rows(rows, "sampled_groups")
    assert values("iter_00001.sampled_groups", table) == {
        ("rollout/sampling_rounds", 0): 2.0,
        ("rollout/dropped_groups", 0): 3.0,
        ("rollout/dropped_share", 0): 3 / 5,
        ("rollout/missing_groups", 0): 1.0,  # three were wanted, as round 1 plays that many
    }
    assert points("iter_00001.sampled_groups", tables.empty("sampled_groups")) == []


def test_update_metrics_keep_their_steps():
    rows = [{"step": s, "metric": "kl", "value": v} for s, v in ((0, 0.0), (1, float("nan")))]
    table = tables.from_rows(rows, "metrics")
    assert values("iter_00001.update_metrics", table) == {("update/kl", 0): 0.0}


def test_an_evaluation_is_reported_by_split_not_by_family():
    numbers = dict.fromkeys(schemas.EVALUATION.names, 0.0) | {"n": 5}
    rows = [
        numbers | {"split": "held_out", "family": None, "exact_match": 0.25},
        numbers | {"split": "held_out", "family": "capital", "exact_match": 1.0},
    ]
    got = values("base.evaluation", tables.from_rows(rows, "evaluation"))
    assert got["held_out/exact_match", 0] == 0.25
    assert len(got) == 5


def test_what_an_evaluation_has_no_value_for_is_no_metric():
    numbers = dict.fromkeys(schemas.EVALUATION.names, 0.0) | {"n": 5}
    row = numbers | {"split": "held_out", "family": None, "greedy_exact_match": None}
    got = values("base.evaluation", tables.from_rows([row], "evaluation"))
    assert ("held_out/greedy_exact_match", 0) not in got
    assert len(got) == 4


@pytest.mark.parametrize("dataset", ["tasks", "iter_00001.policy", "iter_00001.advantages"])
def test_other_datasets_have_no_metrics(dataset):
    assert points(dataset, tables.empty("tasks")) == []
    assert points(dataset, {"a": 1}) == []


def test_failures_of_the_infrastructure_are_counted_in_trajectories_and_tools():
    def row(trajectory, end_reason, info="{}"):
        return step(trajectory, 0) | {"truncated": True, "end_reason": end_reason, "info": info}

    down = '{"failure": "no route", "unavailable_tool": "qa.search"}'
    table = rollouts(
        row("t/0", "infrastructure", down),
        row("t/1", "infrastructure", down),
        row("t/2", "infrastructure", '{"failure": "the simulator died"}'),
        row("t/3", "max_steps"),
    )
    found = values("iter_00001.rollouts", table)
    assert found["rollout/infrastructure_failures", 0] == 0.75
    assert found["rollout/unavailable_tools", 0] == 1.0

"""Trajectories of a table: found, sorted and aligned from any row order."""

from __future__ import annotations

import numpy as np
import pytest

from agent_r1.schemas import SchemaError
from agent_r1.tables.trajectories import align, codes, find_trajectories, in_order, labels
from tests.support.step_tables import rewards, rollouts, step

TABLE = rollouts(step("b/0", 1), step("a/0", 0), step("b/0", 0), step("a/1", 0))


def test_trajectories_are_sorted_by_id_and_step() -> None:
    found = find_trajectories(TABLE, "rollouts")
    assert found.ids == ["a/0", "a/1", "b/0"]
    assert found.order.tolist() == [1, 3, 2, 0]
    assert found.offsets.tolist() == [0, 1, 2, 4]
    assert found.first_rows.tolist() == [1, 3, 2]
    assert found.last_rows.tolist() == [1, 3, 0]
    assert found.of_row.tolist() == [2, 0, 2, 1]
    assert not found.sorted


def test_a_table_is_sorted_and_a_sorted_one_is_unchanged() -> None:
    ordered = in_order(TABLE, "rollouts")
    assert ordered["trajectory_id"].tolist() == ["a/0", "a/1", "b/0", "b/0"]
    assert ordered["step_index"].tolist() == [0, 0, 0, 1]
    assert in_order(ordered, "rollouts") is ordered


@pytest.mark.parametrize("steps", [(0, 2), (1,), (0, 0)])
def test_a_missing_or_duplicate_step_is_named(steps: tuple[int, ...]) -> None:
    table = rollouts(*(step("a/0", index) for index in steps))
    with pytest.raises(SchemaError, match=r"table 'rollouts', row .*'a/0' has step"):
        find_trajectories(table, "rollouts")


def test_a_table_is_aligned_to_the_rollouts() -> None:
    scored = rewards(in_order(TABLE, "rollouts"), a__0=1, a__1=2, b__0=3)
    aligned = align(scored, "rewards", TABLE)
    assert aligned["trajectory_id"].tolist() == TABLE["trajectory_id"].tolist()
    assert aligned["reward"].tolist() == [3, 1, 0, 2]
    shuffled = scored.take(np.array([2, 0, 3, 1])).reset_index(drop=True)
    assert align(shuffled, "rewards", TABLE).equals(aligned)


def test_tables_with_other_steps_do_not_align() -> None:
    scored = rewards(rollouts(step("a/0"), step("a/1"), step("b/0")), a__0=1, a__1=2, b__0=3)
    with pytest.raises(SchemaError, match="'b/0' has 1 rows there and 2 in 'rollouts'"):
        align(scored, "rewards", TABLE)


def test_codes_are_sorted_and_labels_are_by_first_appearance() -> None:
    column = rollouts(step("b/0"), step("a/0"), step("b/1"))["task_id"]
    numbers, names = codes(column)
    assert (numbers.tolist(), names) == ([1, 0, 1], ["a", "b"])
    assert labels(column).tolist() == [0, 1, 0]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1 import tables
from agent_r1.parameters import ParameterError
from agent_r1.rollout import drawing_order, group_requests, select_tasks
from tests.support.toy_world import tasks_table


def chosen(count: int, position: int, seed: int = 0, tasks: int = 10) -> list[str]:
    table = tables.conform(tasks_table(tasks), "tasks")
    return select_tasks(table, count, position, seed)["task_id"].tolist()


@given(st.integers(1, 10), st.integers(0, 5), st.integers(0, 100))
def test_an_epoch_draws_without_replacement(count, epoch, seed):
    batches = 10 // count
    drawn = [chosen(count, epoch * batches + batch, seed) for batch in range(batches)]
    ids = [task for batch in drawn for task in batch]
    assert len(ids) == len(set(ids)) == count * batches


def test_epochs_differ_in_their_order_and_an_iteration_is_a_function_of_its_number():
    assert chosen(5, 0) == chosen(5, 0)
    assert {tuple(chosen(5, position)) for position in range(8)} != {tuple(chosen(5, 0))}
    assert chosen(5, 0) != chosen(5, 2)
    assert chosen(5, 0) != chosen(5, 0, seed=2)


def test_only_training_tasks_are_drawn():
    table = tasks_table(10)
    table.loc[5:, "split"] = "held_out"
    drawn = select_tasks(tables.conform(table, "tasks"), 5, 0, 0)
    assert drawn["task_id"].tolist() == [f"task{n:02d}" for n in range(5)]
    with pytest.raises(ParameterError, match="the split 'train' has only 5 tasks"):
        select_tasks(tables.conform(table, "tasks"), 6, 0, 0)


@given(st.integers(1, 10), st.integers(0, 12), st.integers(0, 100))
def test_further_tasks_come_after_the_batch_and_do_not_change_the_epochs(count, position, seed):
    table = tasks_table(12)
    table.loc[10:, "split"] = "held_out"
    table = tables.conform(table, "tasks")
    order = drawing_order(table, count, position, seed)["task_id"].tolist()
    assert order[:count] == select_tasks(table, count, position, seed)["task_id"].tolist()
    assert sorted(order) == [f"task{n:02d}" for n in range(10)]
    shuffled = table.sample(frac=1, random_state=seed)
    assert drawing_order(shuffled, count, position, seed)["task_id"].tolist() == order


def test_each_iteration_draws_further_tasks_in_its_own_order():
    table = tables.conform(tasks_table(10), "tasks")
    orders = {tuple(drawing_order(table, 1, position, 0)["task_id"][1:]) for position in range(5)}
    assert len(orders) == 5
    assert tuple(sorted(next(iter(orders)))) not in orders


def test_p39_all_seeds_differ():
    tasks = tables.conform(tasks_table(20), "tasks")
    runs = [
        group_requests(tasks, iteration, [1.0] * 8, seed, stage)
        for iteration in ("iter_00001", "iter_00002")
        for seed in (0, 1)
        for stage in ("generate_rollouts", "evaluate_policy")
    ]
    seeds = [request.seed for run in runs for request in run]
    assert len(seeds) == len(set(seeds)) == 8 * 160


def test_a_group_has_an_attempt_for_each_temperature():
    tasks = tables.conform(tasks_table(2), "tasks")
    found = group_requests(tasks, "base", [1.0, 0.0], 0, "evaluate_policy")
    assert [(r.trajectory_id, r.group_id, r.sample_index, r.temperature) for r in found] == [
        ("base/task00/0", "base/task00", 0, 1.0),
        ("base/task00/1", "base/task00", 1, 0.0),
        ("base/task01/0", "base/task01", 0, 1.0),
        ("base/task01/1", "base/task01", 1, 0.0),
    ]
    assert found[0].task["answers"] == ["42"]

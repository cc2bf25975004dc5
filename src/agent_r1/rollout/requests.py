"""Choose the tasks to attempt, and make requests with ids and seeds for each attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from agent_r1 import tables
from agent_r1.parameters import ParameterError
from agent_r1.seeding import derive_seed


@dataclass(frozen=True, slots=True)
class TrajectoryRequest:
    """One attempt at a task."""

    trajectory_id: str
    """``{iteration}/{task_id}/{sample_index}``; also the name of the engine's token stream."""
    task: Mapping[str, Any]
    """A row of the tasks table."""
    group_id: str
    """Attempts with one group id are compared with each other. They share equal prompts."""
    sample_index: int
    temperature: float
    """0 is greedy."""
    seed: int
    """The sampling seeds of the steps are derived from it."""


def select_tasks(tasks: pd.DataFrame, count: int, position: int, seed: int) -> pd.DataFrame:
    """The training tasks of one iteration, drawn without replacement within an epoch.

    Each epoch has its own order. Tasks that remain after the last complete batch of an epoch are
    skipped. The choice depends only on the arguments, so any iteration can be rerun alone.

    Args:
        tasks: the tasks table.
        count: number of tasks per iteration.
        position: number of iterations before this one.
        seed: the experiment's seed.

    Raises:
        ParameterError: there are fewer training tasks than ``count``.
    """
    train = _training_tasks(tasks)
    if len(train) < count:
        raise ParameterError(
            f"rollout.tasks_per_iteration is {count}, but the split 'train' has only "
            f"{len(train)} tasks"
        )
    epoch, batch = divmod(position, len(train) // count)
    order = np.random.default_rng(derive_seed(seed, "task_order", epoch)).permutation(len(train))
    return train.iloc[np.sort(order[batch * count : (batch + 1) * count])].reset_index(drop=True)


def drawing_order(tasks: pd.DataFrame, count: int, position: int, seed: int) -> pd.DataFrame:
    """All training tasks, in the order in which an iteration draws them if it needs more than its
    batch.

    First comes the iteration's own batch from `select_tasks`, then all other tasks in an order that
    depends on the iteration. Drawing further tasks does not change the batches of an epoch, so no
    iteration depends on how many tasks an earlier one drew. Another iteration of the same epoch may
    draw a task again, but no iteration draws a task twice.

    Arguments and errors are those of `select_tasks`.
    """
    batch = select_tasks(tasks, count, position, seed)
    others = _training_tasks(tasks)
    others = others[~others["task_id"].isin(batch["task_id"])]
    draw = np.random.default_rng(derive_seed(seed, "further_tasks", position))
    return pd.concat([batch, others.iloc[draw.permutation(len(others))]], ignore_index=True)


def _training_tasks(tasks: pd.DataFrame) -> pd.DataFrame:
    return tasks[tasks["split"] == "train"].sort_values("task_id")


def group_requests(
    tasks: pd.DataFrame,
    iteration: str,
    temperatures: Sequence[float],
    seed: int,
    stage: str,
) -> list[TrajectoryRequest]:
    """A group of attempts for each task, with one attempt per temperature.

    The seed of an attempt is derived from (seed, iteration, stage, trajectory id), so attempts of a
    group, or of a run, have different seeds.
    """
    rows: list[Mapping[str, Any]] = tables.to_arrow(tasks, "tasks", extra="drop").to_pylist()
    requests = []
    for task in rows:
        group = f"{iteration}/{task['task_id']}"
        for sample, temperature in enumerate(temperatures):
            name = f"{group}/{sample}"
            step_seed = derive_seed(seed, iteration, stage, name)
            requests.append(
                TrajectoryRequest(name, task, group, sample, float(temperature), step_seed)
            )
    return requests

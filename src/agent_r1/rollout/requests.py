"""Which tasks are attempted, how often, and with which seeds."""

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
    """``{iteration}/{task_id}/{sample_index}``; also the name of the engine's session."""
    task: Mapping[str, Any]
    """A row of the tasks table."""
    group_id: str
    """Attempts that are compared with each other; equal prompts of a group are computed once."""
    sample_index: int
    temperature: float
    """0 is greedy."""
    seed: int
    """Each step's sampling seed is derived from it."""


def select_tasks(tasks: pd.DataFrame, count: int, position: int, seed: int) -> pd.DataFrame:
    """The training tasks of one iteration: drawn without replacement, epoch after epoch.

    Each epoch has an order of its own; what an epoch leaves over after its last whole batch is
    left out. The choice depends on the arguments alone, so any iteration can be rerun by itself.

    Args:
        tasks: the tasks table.
        count: tasks of an iteration.
        position: iterations before this one.
        seed: the experiment's.

    Raises:
        ParameterError: there are fewer training tasks than ``count``.
    """
    train = _training_tasks(tasks)
    if len(train) < count:
        raise ParameterError(
            f"rollout.tasks_per_iteration is {count}, but there are only {len(train)} tasks in "
            "the split 'train'"
        )
    epoch, batch = divmod(position, len(train) // count)
    order = np.random.default_rng(derive_seed(seed, "task_order", epoch)).permutation(len(train))
    return train.iloc[np.sort(order[batch * count : (batch + 1) * count])].reset_index(drop=True)


def drawing_order(tasks: pd.DataFrame, count: int, position: int, seed: int) -> pd.DataFrame:
    """All training tasks, in the order in which an iteration that needs further ones draws them.

    First its own batch, as `select_tasks` gives it, then all the others in an order of the
    iteration's own. The further ones do not move the walk through the epochs, so no iteration
    depends on how many an earlier one drew: each task still is in one batch per epoch, none is
    skipped, and it may be drawn again by another iteration of the same epoch, but never twice by
    the same.

    Args and errors are those of `select_tasks`.
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
    """A group of attempts for each task, one for each of ``temperatures``.

    The seed of each attempt is derived from (seed, iteration, stage, trajectory id): no two of a
    group, or of a run, are the same.
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

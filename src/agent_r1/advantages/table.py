"""From the tables of an iteration to its ``advantages``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from agent_r1 import schemas
from agent_r1.advantages.base import AdvantageParameters, EstimatorInputs
from agent_r1.advantages.groups import group_statistics
from agent_r1.advantages.registry import estimator
from agent_r1.schemas import Ragged, SchemaError, ragged
from agent_r1.trajectories import align, codes, find_trajectories

_WHITENING_EPS = 1e-8


def advantages_table(
    rollouts: pd.DataFrame, rewards: pd.DataFrame, parameters: AdvantageParameters
) -> pd.DataFrame:
    """The ``advantages`` table of conformed tables, in the row order of ``rollouts``.

    Raises:
        SchemaError: the tables do not hold the same steps, a reward is not finite, or every group
            has one member though a task was tried several times.
    """
    inputs = _inputs(rollouts, align(rewards, "rewards", rollouts))
    estimate = estimator(parameters.estimator)(inputs, parameters)
    mask = inputs.per_token(inputs.scored)
    advantages = estimate.advantages
    if parameters.whiten:
        advantages = whiten(advantages, mask)
    offsets = ragged(rollouts["action_token_ids"]).offsets
    sizes = group_statistics(inputs.trajectory_rewards, inputs.groups).size[inputs.groups]
    columns = {
        "trajectory_id": rollouts["trajectory_id"].array.__arrow_array__(),
        "step_index": rollouts["step_index"].array.__arrow_array__(),
        "advantages": Ragged(advantages, offsets).to_arrow(pa.float32()),
        "loss_mask": Ragged(mask, offsets).to_arrow(pa.bool_()),
        "group_size": sizes[inputs.trajectories.of_row],
    }
    if estimate.returns is not None:
        columns["returns"] = Ragged(estimate.returns, offsets).to_arrow(pa.float32())
    return schemas.build(columns, "advantages")


def whiten(advantages: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Mean 0 and (unbiased) variance 1 over the tokens of ``mask``; 0 elsewhere."""
    chosen = advantages[mask].astype(np.float64)
    if len(chosen) < 2:
        return np.zeros_like(advantages)
    scale = np.sqrt(chosen.var(ddof=1) + _WHITENING_EPS)
    return np.where(mask, (advantages - chosen.mean()) / scale, 0.0).astype(advantages.dtype)


def _inputs(rollouts: pd.DataFrame, rewards: pd.DataFrame) -> EstimatorInputs:
    trajectories = find_trajectories(rollouts, "rollouts")
    column = rewards["trajectory_reward"].array.__arrow_array__()
    by_row = column.to_numpy(zero_copy_only=False).astype(np.float64)
    known = column.is_valid().to_numpy(zero_copy_only=False)
    if not np.isfinite(by_row[known]).all():
        row = np.flatnonzero(known & ~np.isfinite(by_row))[0]
        raise SchemaError(f"table 'rewards', row {row}: trajectory_reward is {by_row[row]}")
    group, _ = codes(rollouts["group_id"])
    groups = group[trajectories.first_rows]
    task, names = codes(rollouts["task_id"])
    _check_groups(groups, task[trajectories.first_rows], names)
    return EstimatorInputs(
        trajectories=trajectories,
        trajectory_rewards=by_row[trajectories.last_rows],
        groups=groups,
        action_lengths=ragged(rollouts["action_token_ids"]).lengths,
    )


def _check_groups(groups: np.ndarray, tasks: np.ndarray, names: list[str]) -> None:
    """A wrong group id makes groups of one, whose advantages are all 0: training would do nothing
    and look well."""
    tries = np.bincount(tasks, minlength=1)
    if len(groups) and np.bincount(groups).max() == 1 and tries.max() > 1:
        raise SchemaError(
            f"table 'rollouts': task '{names[tries.argmax()]}' was tried {tries.max()} times, but "
            "every group_id names a single trajectory: there is nothing to compare with"
        )

"""From the tables of an iteration to its ``advantages``.

1. The estimator computes an advantage for every action token, in float64.
2. Tokens of unscored trajectories get 0 and are not trained on. With ``mask_truncated``, tokens of
   trajectories that a limit cut (`agent_r1.advantages.inputs.CUT`) are not trained on either
   (Q. Yu et al., "DAPO" (2025), https://arxiv.org/abs/2503.14476, sec. 3.4). Cut trajectories are
   scored, so they still count in the statistics of their group.
3. Whitening takes its mean and variance from the trained tokens. Advantages that had nothing to be
   compared with stay 0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from agent_r1 import tables
from agent_r1.advantages.base import AdvantageParameters
from agent_r1.advantages.inputs import EstimatorInputs
from agent_r1.advantages.registry import estimator
from agent_r1.advantages.whitening import whiten
from agent_r1.schemas import SchemaError
from agent_r1.tables.arrays import Ragged
from agent_r1.tables.trajectories import codes


def advantages_table(
    rollouts: pd.DataFrame,
    rewards: pd.DataFrame,
    logprobs: pd.DataFrame | None,
    parameters: AdvantageParameters,
) -> pd.DataFrame:
    """The ``advantages`` table, in the row order of ``rollouts``.

    Args:
        rollouts: conformed.
        rewards: conformed; the same steps, in any order.
        logprobs: needed by estimators with a critic and for a KL in the reward; conformed when
            it is read.
        parameters: the estimator and its parameters.

    Raises:
        SchemaError: the tables do not hold the same steps; a needed number is missing or not
            finite; or the estimator compares groups, a task has several trajectories, and yet
            every group has one member.
    """
    inputs = EstimatorInputs.read(
        rollouts, rewards, logprobs, parameters.kl_coef, parameters.kl_estimator
    )
    chosen = estimator(parameters.estimator)
    estimate = chosen.estimate(inputs, parameters)
    if estimate.compared is not None:
        _check_groups(inputs)
    trained = inputs.scored & ~inputs.cut if parameters.mask_truncated else inputs.scored
    advantages = np.where(inputs.per_token(inputs.scored), estimate.advantages, 0.0)
    estimate = estimate._replace(
        advantages=advantages
    )  # frees the old array, which is as large as the tables
    if chosen.whitens if parameters.whiten is None else parameters.whiten:
        _whiten(advantages, inputs, trained, estimate.compared, parameters.whiten_by)
    columns = _columns(inputs, advantages, trained, estimate.returns)
    if inputs.given_order is not None:
        columns = {name: column.take(inputs.given_order) for name, column in columns.items()}
    for key in ("trajectory_id", "step_index"):
        columns[key] = rollouts[key].array.__arrow_array__()
    return tables.build(columns, "advantages")


def _whiten(
    advantages: np.ndarray,
    inputs: EstimatorInputs,
    trained: np.ndarray,
    compared: np.ndarray | None,
    by: Literal["batch", "environment"],
) -> None:
    """Whiten the advantages of scored and compared tokens in place."""
    rows = inputs.per_row(inputs.scored)
    moved = np.repeat(rows if compared is None else rows & compared, inputs.action_lengths)
    if by == "batch":
        return whiten(advantages, inputs.per_token(trained), moved)
    for environment in range(inputs.environments.max(initial=-1) + 1):
        part = inputs.environments == environment
        whiten(advantages, inputs.per_token(trained & part), moved & inputs.per_token(part))


def _columns(
    inputs: EstimatorInputs,
    advantages: np.ndarray,
    trained: np.ndarray,
    returns: np.ndarray | None,
) -> dict[str, pa.Array]:
    """All columns except the keys, in the row order of the inputs."""
    offsets = inputs.token_offsets
    sizes = np.bincount(inputs.groups, inputs.scored)[inputs.groups].astype(np.int32)
    columns = {
        "advantages": Ragged(advantages, offsets).to_arrow(pa.float32()),
        "loss_mask": Ragged(inputs.per_token(trained), offsets).to_arrow(pa.bool_()),
        "group_size": pa.array(inputs.per_row(sizes)),
    }
    if returns is not None:
        missing = ~inputs.per_token(inputs.scored) | np.isnan(returns)
        columns["returns"] = Ragged(returns, offsets).to_arrow(pa.float32(), null=missing)
    return columns


def _check_groups(inputs: EstimatorInputs) -> None:
    """Refuse groups of one for repeated tasks: with wrong group ids all advantages are 0, and
    training silently does nothing."""
    tasks, names = codes(inputs.rollouts["task_id"].take(inputs.trajectories.first_rows))
    tries = np.bincount(tasks, minlength=1)
    if len(tasks) and np.bincount(inputs.groups).max() == 1 and tries.max() > 1:
        raise SchemaError(
            f"table 'rollouts': task '{names[tries.argmax()]}' has {tries.max()} trajectories, but "
            "every group_id has one: there is nothing to compare; give the trajectories of a task "
            "the same group_id"
        )

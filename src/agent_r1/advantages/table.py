"""From the tables of an iteration to its ``advantages``.

1. The estimator makes an advantage for every action token, in float64.
2. The tokens of unscored trajectories get 0 and are not trained on. With ``mask_truncated`` those
   of trajectories that a limit cut (`agent_r1.advantages.inputs.CUT`) are not trained on either
   (Q. Yu et al., "DAPO" (2025), sec. 3.4); they were scored, so they still count in the statistics
   of their group, and the others are compared with them.
3. Whitening, if it is asked for, takes its mean and variance from the tokens that are trained on.
   What had nothing to be compared with stays 0.
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
        logprobs: read, and only then conformed, by estimators with a critic and for a KL in the
            reward.
        parameters: the estimator and its numbers.

    Raises:
        SchemaError: the tables do not hold the same steps, a number that is needed is missing or
            not finite, or groups are compared and every one has one member, though a task was
            tried several times.
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
    estimate = estimate._replace(advantages=advantages)  # the old ones are as large as the tables
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
    """Whiten all tokens that were scored and compared, in place."""
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
    """The columns but for the keys, in the order of the inputs."""
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
    """A wrong group id makes groups of one, whose advantages are all 0: training would do nothing
    and look well."""
    tasks, names = codes(inputs.rollouts["task_id"].take(inputs.trajectories.first_rows))
    tries = np.bincount(tasks, minlength=1)
    if len(tasks) and np.bincount(inputs.groups).max() == 1 and tries.max() > 1:
        raise SchemaError(
            f"table 'rollouts': task '{names[tries.argmax()]}' was tried {tries.max()} times, but "
            "every group_id names a single trajectory: there is nothing to compare with"
        )

"""Node: compute the reward of each step."""

from __future__ import annotations

import pandas as pd

from agent_r1 import tables
from agent_r1.rewards.composition import RewardParameters, rewards_table


def score_rewards(
    rollouts: pd.DataFrame,
    tasks: pd.DataFrame,
    parameters: RewardParameters,
) -> pd.DataFrame:
    """The ``rewards`` table: one row per row of ``rollouts``, in the same order.

    Raises:
        ParameterError: an unknown term or parameter.
        SchemaError: a task is missing, or a reward is not a finite number.
    """
    return rewards_table(
        tables.conform(rollouts, "rollouts"),
        tables.conform(tasks, "tasks"),
        RewardParameters.read(parameters, "reward"),
    )

"""Node: compute the advantage of each action token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from agent_r1 import tables
from agent_r1.advantages.base import AdvantageParameters
from agent_r1.advantages.table import advantages_table
from agent_r1.kl.controller import current_coefficient


def compute_advantages(
    rollouts: pd.DataFrame,
    rewards: pd.DataFrame,
    logprobs: pd.DataFrame | None,
    parameters: AdvantageParameters,
    controllers: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """The ``advantages`` table: one row per row of ``rollouts``, in the same order.

    Args:
        rollouts: the iteration's trajectories.
        rewards: their rewards.
        logprobs: the critic's values and the reference's log-probs; None if the estimator needs
            neither.
        parameters: the group ``advantage``, read or as a mapping.
        controllers: those of the last iteration, with the KL coefficient if it is steered; None
            uses its start value.

    Raises:
        ParameterError: an unknown estimator or parameter.
        SchemaError: the tables do not fit together, or a needed value is missing.
    """
    parameters = AdvantageParameters.read(parameters, "advantage")
    coefficient = current_coefficient(controllers or {}, "reward_kl_coef", parameters)
    return advantages_table(
        tables.conform(rollouts, "rollouts"),
        tables.conform(rewards, "rewards"),
        logprobs,
        parameters.model_copy(update={"kl_coef": coefficient}),
    )

"""Node: how much better than expected each action token was."""

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
    """The ``advantages`` table: exactly one row per row of ``rollouts``, in its order.

    ``logprobs`` holds the critic's values and the reference; an estimator that needs neither does
    not read it. ``controllers`` are those of the last iteration: where the coefficient of the KL
    stands, if it is steered; without them it stands where it starts.

    Raises:
        ParameterError: an unknown estimator or parameter.
        SchemaError: the tables do not fit together, or a value that is needed is missing.
    """
    parameters = AdvantageParameters.read(parameters, "advantage")
    coefficient = current_coefficient(controllers or {}, "reward_kl_coef", parameters)
    return advantages_table(
        tables.conform(rollouts, "rollouts"),
        tables.conform(rewards, "rewards"),
        logprobs,
        parameters.model_copy(update={"kl_coef": coefficient}),
    )

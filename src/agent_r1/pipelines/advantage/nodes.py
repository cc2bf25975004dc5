"""Node: how much better than expected each action token was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from agent_r1 import schemas
from agent_r1.advantages.base import AdvantageParameters
from agent_r1.advantages.table import advantages_table


def compute_advantages(
    rollouts: pd.DataFrame,
    rewards: pd.DataFrame,
    logprobs: pd.DataFrame | None,
    parameters: AdvantageParameters | Mapping[str, Any],
) -> pd.DataFrame:
    """The ``advantages`` table: exactly one row per row of ``rollouts``, in its order.

    ``logprobs`` holds the critic's values and the reference; an estimator that needs neither does
    not read it.

    Raises:
        ParameterError: an unknown estimator or parameter.
        SchemaError: the tables do not fit together, or a value that is needed is missing.
    """
    return advantages_table(
        schemas.conform(rollouts, "rollouts"),
        schemas.conform(rewards, "rewards"),
        logprobs,
        AdvantageParameters.read(parameters, "advantage"),
    )

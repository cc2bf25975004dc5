"""Node: pairs of a better and a worse trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd

from agent_r1 import schemas
from agent_r1.training.preferences import best_against_worst

_NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


def build_preferences(
    rollouts: pd.DataFrame,
    rewards: pd.DataFrame,
    parameters: Mapping[str, Any] = _NO_PARAMETERS,
) -> pd.DataFrame:
    """The ``preferences`` table: best against worst of each group, ties give none.

    Empty unless ``parameters`` (those of the update) name the objective ``dpo``: no other reads it.
    """
    if dict(parameters).get("objective") != "dpo":
        return schemas.empty("preferences")
    return best_against_worst(
        schemas.conform(rollouts, "rollouts"), schemas.conform(rewards, "rewards")
    )

"""Node: pairs of a better and a worse trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pandas as pd

from agent_r1 import schemas
from agent_r1.losses.registry import objective
from agent_r1.training.preferences import best_against_worst

_NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


def build_preferences(
    rollouts: pd.DataFrame,
    rewards: pd.DataFrame,
    parameters: Mapping[str, Any] = _NO_PARAMETERS,
) -> pd.DataFrame:
    """The ``preferences`` table: best against worst of each group, ties give none.

    Empty unless ``parameters`` (those of the update) name an objective that trains on pairs, as
    ``dpo`` does: no other reads it.

    Raises:
        ParameterError: there is no such objective.
    """
    name = dict(parameters).get("objective")
    if name is None or objective(name).trains_on != "pairs":
        return schemas.empty("preferences")
    return best_against_worst(
        schemas.conform(rollouts, "rollouts"), schemas.conform(rewards, "rewards")
    )

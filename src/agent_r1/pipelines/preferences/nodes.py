"""Node: build preference pairs."""

from __future__ import annotations

import pandas as pd

from agent_r1 import tables
from agent_r1.losses import registry
from agent_r1.training.preferences import best_against_worst


def build_preferences(
    rollouts: pd.DataFrame, rewards: pd.DataFrame, objective: str | None = None
) -> pd.DataFrame:
    """The ``preferences`` table: the best and the worst trajectory of each group; no pair for ties.

    Empty unless ``objective`` (``update.objective``) trains on pairs, as ``dpo`` does.

    Raises:
        ParameterError: the objective is unknown.
    """
    if objective is None or registry.objective(objective).trains_on != "pairs":
        return tables.empty("preferences")
    return best_against_worst(
        tables.conform(rollouts, "rollouts"), tables.conform(rewards, "rewards")
    )

"""Node: pairs of a better and a worse trajectory."""

from __future__ import annotations

import pandas as pd

from agent_r1 import tables
from agent_r1.losses import registry
from agent_r1.training.preferences import best_against_worst


def build_preferences(
    rollouts: pd.DataFrame, rewards: pd.DataFrame, objective: str | None = None
) -> pd.DataFrame:
    """The ``preferences`` table: best against worst of each group, ties give none.

    Empty unless ``objective`` (that of the update) trains on pairs, as ``dpo`` does: no other reads
    it.

    Raises:
        ParameterError: there is no such objective.
    """
    if objective is None or registry.objective(objective).trains_on != "pairs":
        return tables.empty("preferences")
    return best_against_worst(
        tables.conform(rollouts, "rollouts"), tables.conform(rewards, "rewards")
    )

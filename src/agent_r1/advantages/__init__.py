"""Advantage estimators: pure functions of rewards and values, one file per estimator."""

from agent_r1.advantages.base import AdvantageParameters
from agent_r1.advantages.table import advantages_table

__all__ = ["AdvantageParameters", "advantages_table"]

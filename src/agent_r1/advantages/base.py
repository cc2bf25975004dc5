"""What an estimator is given and gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from agent_r1.parameters import Parameters
from agent_r1.trajectories import Trajectories


class AdvantageParameters(Parameters):
    """``advantage`` in ``conf/``. An estimator reads what its paper has and ignores the rest."""

    estimator: str = "grpo"
    """Name in `agent_r1.advantages.registry.ESTIMATORS`."""
    level: Literal["token", "step"] = "token"
    """What an advantage belongs to, for estimators that tell tokens of a step apart."""
    gamma: float = Field(1.0, ge=0, le=1)
    """Discount per token or step, for estimators with returns."""
    lam: float = Field(1.0, ge=0, le=1)
    """Lambda of GAE, for estimators with a critic."""
    whiten: bool = False
    """Mean 0 and variance 1 over all trained tokens of the table, after the estimator."""
    normalize_std: bool = True
    """Divide by the group's standard deviation (GRPO); false: Dr. GRPO."""
    eps: float = Field(1e-6, gt=0)
    """Added to the standard deviation."""
    step_weight: float = Field(1.0, ge=0)
    """Weight of the step's advantage beside the episode's, for GiGPO."""

    @field_validator("estimator")
    @classmethod
    def _is_known(cls, name: str) -> str:
        from agent_r1.advantages.registry import estimator  # it imports this module

        estimator(name)
        return name


@dataclass(frozen=True)
class EstimatorInputs:
    """Rewards of whole trajectories and what is needed to spread them over tokens."""

    trajectories: Trajectories
    trajectory_rewards: np.ndarray
    """float64[trajectories]; NaN where not scored."""
    groups: np.ndarray
    """int64[trajectories]: the group of each trajectory, 0 … groups - 1."""
    action_lengths: np.ndarray
    """int64[rows]: action tokens of each table row."""

    @property
    def scored(self) -> np.ndarray:
        """bool[trajectories]."""
        return ~np.isnan(self.trajectory_rewards)

    def per_token(self, values: np.ndarray) -> np.ndarray:
        """One value per trajectory, repeated over its action tokens in flat action order."""
        return np.repeat(values[self.trajectories.of_row], self.action_lengths)


class Estimate(NamedTuple):
    """Per action token, in flat action order."""

    advantages: np.ndarray
    """float[action tokens]; 0 where not scored."""
    returns: np.ndarray | None = None
    """float[action tokens]: targets of a critic; None if the estimator has none."""


Estimator = Callable[[EstimatorInputs, AdvantageParameters], Estimate]

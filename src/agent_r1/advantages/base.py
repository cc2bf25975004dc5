"""What an estimator returns, and the parameters of all estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from agent_r1.advantages.inputs import EstimatorInputs
from agent_r1.kl.controller import KlParameters


class AdvantageParameters(KlParameters):
    """``advantage`` in ``conf/``. An estimator uses the parameters of its paper, no others."""

    estimator: str = "grpo"
    """Name in `agent_r1.advantages.registry.ESTIMATORS`."""
    level: Literal["token", "step"] = "token"
    """For estimators with returns, the unit that has an advantage and that gamma and lam count: an
    action token, or a step (its advantage is repeated over its tokens)."""
    gamma: float = Field(1.0, ge=0, le=1)
    """For estimators with returns: discount per token or step (see ``level``; GiGPO: per step)."""
    lam: float = Field(1.0, ge=0, le=1)
    """GAE's lambda per token or step. 1: only rewards; 0: one reward, then the critic."""
    bootstrap_truncated: bool = True
    """GAE's V after a truncated trajectory: true is the critic's value of the state it stopped in,
    false is 0, as after a terminated one."""
    whiten: bool | None = None
    """Whiten: mean 0 and variance 1 over the trained tokens; null: as in the estimator's paper."""
    whiten_by: Literal["batch", "environment"] = "batch"
    """Tokens that are whitened together; ``environment`` suits mixtures of reward scales."""
    normalize_std: bool = True
    """Divide by the group's standard deviation, for GRPO and GiGPO."""
    eps: float = Field(1e-6, gt=0)
    """Added to the group's standard deviation."""
    step_weight: float = Field(1.0, ge=0)
    """Weight of the step's advantage, added to the episode's, for GiGPO."""
    mask_truncated: bool = False
    """Do not train on trajectories that a limit cut (DAPO); see `agent_r1.advantages.table`."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k1"
    """Estimator of the KL that ``kl_coef`` subtracts from the reward. k1 is unbiased; a reward
    needs no gradient."""

    @field_validator("estimator")
    @classmethod
    def _is_known(cls, name: str) -> str:
        from agent_r1.advantages.registry import estimator  # the registry imports this module

        estimator(name)
        return name


class Estimate(NamedTuple):
    """Arrays over all action tokens, trajectory after trajectory and step after step."""

    advantages: np.ndarray
    """float64[action tokens]; undefined where the trajectory is not scored."""
    returns: np.ndarray | None = None
    """float64[action tokens]: the critic's targets, NaN where a token has none; None if the
    estimator has no returns."""
    compared: np.ndarray | None = None
    """bool[rows]: false where there was nothing to compare with. These advantages are 0 and stay 0
    when the others are whitened. None: true everywhere."""


class Estimator(NamedTuple):
    """An estimator and what it needs."""

    estimate: Callable[[EstimatorInputs, AdvantageParameters], Estimate]
    whitens: bool = False
    """Whether ``whiten: null`` whitens: what its paper does."""
    compares: bool = False
    """Whether it compares the trajectories of a group; a group of one then has advantage 0."""
    has_returns: bool = False
    """Whether its returns can train a critic."""
    needs_values: bool = False
    """Whether it reads a critic's values."""

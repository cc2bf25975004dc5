"""What an estimator gives back, and the parameters that all of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from agent_r1.advantages.inputs import EstimatorInputs
from agent_r1.kl.controller import KlParameters


class AdvantageParameters(KlParameters):
    """``advantage`` in ``conf/``. An estimator reads what its paper has and ignores the rest."""

    estimator: str = "grpo"
    """Name in `agent_r1.advantages.registry.ESTIMATORS`."""
    level: Literal["token", "step"] = "token"
    """What an advantage belongs to, and what gamma and lam count, for estimators with returns: an
    action token, or a step (its advantage is repeated over its tokens)."""
    gamma: float = Field(1.0, ge=0, le=1)
    """Discount per token or step (of ``level``; GiGPO: per step), for estimators with returns."""
    lam: float = Field(1.0, ge=0, le=1)
    """Lambda of GAE per token or step; 1 trusts the rewards alone, 0 the critic alone."""
    bootstrap_truncated: bool = True
    """What GAE takes for V after a truncated trajectory: the critic's value of the state it stopped
    in, or 0 as after a terminated one."""
    whiten: bool | None = None
    """Mean 0 and variance 1 over the trained tokens, after the estimator; null: as its paper."""
    whiten_by: Literal["batch", "environment"] = "batch"
    """Whose tokens are whitened together; by environment, in mixtures whose rewards differ."""
    normalize_std: bool = True
    """Divide by the group's standard deviation, for GRPO and GiGPO."""
    eps: float = Field(1e-6, gt=0)
    """Added to the group's standard deviation."""
    step_weight: float = Field(1.0, ge=0)
    """Weight of the step's advantage beside the episode's, for GiGPO."""
    mask_truncated: bool = False
    """Do not train on trajectories that a limit cut off (DAPO); see `agent_r1.advantages.table`."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k1"
    """Estimator of the KL that ``kl_coef`` takes from the reward; k1 is unbiased, and as a reward
    it needs no gradient."""

    @field_validator("estimator")
    @classmethod
    def _is_known(cls, name: str) -> str:
        from agent_r1.advantages.registry import estimator  # it imports this module

        estimator(name)
        return name


class Estimate(NamedTuple):
    """Per action token, trajectory after trajectory and step after step."""

    advantages: np.ndarray
    """float64[action tokens]; of any value where not scored."""
    returns: np.ndarray | None = None
    """float64[action tokens]: targets of a critic, NaN where a token has none; None if the
    estimator has no returns."""
    compared: np.ndarray | None = None
    """bool[rows]: false where there was nothing to compare with, so that the advantage is 0
    whatever is done to the others; None: true everywhere."""


class Estimator(NamedTuple):
    """An entry of the registry."""

    estimate: Callable[[EstimatorInputs, AdvantageParameters], Estimate]
    whitens: bool = False
    """What ``whiten: null`` means."""
    compares: bool = False
    """Whether it compares the trajectories of a group, so that one alone has the advantage 0."""
    has_returns: bool = False
    """Whether its returns can be the targets of a critic."""
    needs_values: bool = False
    """Whether it reads a critic's values."""

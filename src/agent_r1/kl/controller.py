"""The KL coefficients, fixed or steered to a target.

There are two: ``update.kl_coef`` for the KL in the loss, ``advantage.kl_coef`` for the KL in the
reward.

D. Ziegler et al., "Fine-Tuning Language Models from Human Preferences" (2019),
https://arxiv.org/abs/1909.08593, sec. 2.2: after n trajectories the coefficient is multiplied by
1 + e * n / horizon, with the proportional error e = clip(KL / target - 1, -0.2, 0.2). The paper's
KL is per sequence. Here it is a mean per token, so the target does not depend on the length of the
trajectories.

The state is data: one number per steered coefficient in the dataset ``controllers``. The update
steers both coefficients for the next iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from agent_r1.parameters import ParameterError, Parameters

State = Literal["kl_coef", "reward_kl_coef"]
"""Keys in ``controllers``: the coefficient of the loss, and that of the reward."""

_ERROR_LIMIT = 0.2
"""The paper's value. It limits the effect of one unusual batch."""


class KlParameters(Parameters):
    """Parameters of a KL to the reference policy."""

    kl_coef: float = Field(0.0, ge=0)
    """Weight of the KL: a factor in the loss, or the reward subtracted per nat. 0: no KL term; it
    may still be reported."""
    kl_target: float | None = Field(None, gt=0)
    """Target KL in nats per token; each iteration steers ``kl_coef`` to it. null: fixed."""
    kl_horizon: float = Field(10_000, gt=0)
    """Time constant of the steering, in trajectories: larger is slower."""

    @model_validator(mode="after")
    def _can_be_steered(self) -> KlParameters:
        if self.kl_target is not None and self.kl_coef == 0:
            raise ParameterError(
                "kl_target multiplies kl_coef, and 0 stays 0: set kl_coef to a start value above 0"
            )
        return self


def current_coefficient(
    controllers: Mapping[str, Any], state: State, parameters: KlParameters
) -> float:
    """The coefficient of this iteration: the controller's value, else ``kl_coef``."""
    if parameters.kl_target is None:
        return parameters.kl_coef
    return float(controllers.get(state, parameters.kl_coef))


def steer(
    controllers: Mapping[str, Any],
    state: State,
    parameters: KlParameters,
    kl: float,
    trajectories: int,
) -> dict[str, Any]:
    """The controllers of the next iteration; unchanged without a target or trajectories.

    Args:
        controllers: the controllers of this iteration.
        state: which coefficient to steer.
        parameters: its start value, target and horizon.
        kl: KL(acting policy || reference), nats per token.
        trajectories: number of trajectories that the KL was measured on.
    """
    if parameters.kl_target is None or trajectories == 0:
        return dict(controllers)
    error = min(max(kl / parameters.kl_target - 1, -_ERROR_LIMIT), _ERROR_LIMIT)
    # Bounded by 1: with more trajectories than the horizon the coefficient could become negative.
    factor = 1 + error * min(trajectories / parameters.kl_horizon, 1)
    return {**controllers, state: current_coefficient(controllers, state, parameters) * factor}

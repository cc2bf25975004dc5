"""The coefficient of a KL, fixed or steered to a target: of the one in the loss
(``update.kl_coef``) and of the one in the reward (``advantage.kl_coef``).

D. Ziegler et al., "Fine-Tuning Language Models from Human Preferences" (2019), sec. 2.2: with the
proportional error e = clip(KL / target - 1, -0.2, 0.2) the coefficient is multiplied by
1 + e * n / horizon after every n trajectories. The KL is a mean per token here, so that the target
does not depend on how long trajectories are; the paper's is per sequence.

The state is data: a number per steered coefficient in the dataset ``controllers``. The update
steers both, for the advantages and the update of the next iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from agent_r1.parameters import ParameterError, Parameters

State = Literal["kl_coef", "reward_kl_coef"]
"""Where a coefficient stands in ``controllers``: that of the loss, and that of the reward."""

_ERROR_LIMIT = 0.2
"""The paper's: one wild batch must not throw the coefficient about."""


class KlParameters(Parameters):
    """What a group of parameters with a KL to the reference policy has."""

    kl_coef: float = Field(0.0, ge=0)
    """Weight of that KL: in the loss, or reward per nat that is taken away. 0: none, or only
    reported."""
    kl_target: float | None = Field(None, gt=0)
    """Nats per token that ``kl_coef`` is steered to from iteration to iteration; null: fixed."""
    kl_horizon: float = Field(10_000, gt=0)
    """Trajectories over which the steering acts: longer is slower."""

    @model_validator(mode="after")
    def _can_be_steered(self) -> KlParameters:
        if self.kl_target is not None and self.kl_coef == 0:
            raise ParameterError(
                "kl_target multiplies kl_coef, and 0 stays 0: set kl_coef to where it shall start"
            )
        return self


def current_coefficient(
    controllers: Mapping[str, Any], state: State, parameters: KlParameters
) -> float:
    """The coefficient of this iteration: where the controller stands, else where it starts."""
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
    """The controllers of the next iteration; unchanged without a target or without trajectories.

    Args:
        controllers: those of this iteration.
        state: which coefficient.
        parameters: where it starts, and where it is steered to.
        kl: nats per token, of the policy that acted against the reference.
        trajectories: how many the KL was measured on.
    """
    if parameters.kl_target is None or trajectories == 0:
        return dict(controllers)
    error = min(max(kl / parameters.kl_target - 1, -_ERROR_LIMIT), _ERROR_LIMIT)
    # More trajectories than the horizon could turn the sign, which no weight of a KL may have.
    factor = 1 + error * min(trajectories / parameters.kl_horizon, 1)
    return {**controllers, state: current_coefficient(controllers, state, parameters) * factor}

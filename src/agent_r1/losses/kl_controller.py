"""The coefficient of the KL, fixed or steered to a target.

D. Ziegler et al., "Fine-Tuning Language Models from Human Preferences" (2019), sec. 2.2: with the
proportional error e = clip(KL / target - 1, -0.2, 0.2) the coefficient is multiplied by
1 + e * n / horizon after every n trajectories. The KL is a mean per token here, so that the target
does not depend on how long trajectories are; the paper's is per sequence.

The state is data: a number under ``kl_coef`` in the dataset ``controllers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_r1.losses.base import LossParameters

_STATE = "kl_coef"
_ERROR_LIMIT = 0.2
"""The paper's: one wild batch must not throw the coefficient about."""


def current_coefficient(controllers: Mapping[str, Any], parameters: LossParameters) -> float:
    """The coefficient of this update: where the controller stands, else where it starts."""
    if parameters.kl_target is None:
        return parameters.kl_coef
    return float(controllers.get(_STATE, parameters.kl_coef))


def steer(
    controllers: Mapping[str, Any], parameters: LossParameters, kl: float, trajectories: int
) -> dict[str, Any]:
    """The controllers of the next update; unchanged without a target or without trajectories.

    Args:
        controllers: those of this update.
        parameters: see `LossParameters`.
        kl: nats per token, of the policy that acted against the reference.
        trajectories: how many the KL was measured on.
    """
    if parameters.kl_target is None or trajectories == 0:
        return dict(controllers)
    error = min(max(kl / parameters.kl_target - 1, -_ERROR_LIMIT), _ERROR_LIMIT)
    # More trajectories than the horizon could turn the sign, which no weight of a KL may have.
    factor = 1 + error * min(trajectories / parameters.kl_horizon, 1)
    return {**controllers, _STATE: current_coefficient(controllers, parameters) * factor}

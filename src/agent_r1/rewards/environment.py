"""The environment's own reward."""

from __future__ import annotations

import numpy as np

from agent_r1.rewards.base import Steps, TermParameters


class EnvironmentRewardParameters(TermParameters):
    """``reward.terms.environment`` in ``conf/``."""


def environment(steps: Steps, parameters: EnvironmentRewardParameters) -> np.ndarray:
    """``env_reward`` of each step; NaN where the environment did not score it."""
    return steps.env_reward

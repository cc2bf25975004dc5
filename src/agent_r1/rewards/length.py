"""A price on words: shorter trajectories earn more than longer ones that are as right."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agent_r1.rewards.base import Steps, TermParameters


class LengthParameters(TermParameters):
    """``reward.terms.length`` in ``conf/``."""

    tokens: int = Field(1000, gt=0)
    """Action tokens that cost 1, before the weight."""


def length(steps: Steps, parameters: LengthParameters) -> np.ndarray:
    """Minus the tokens of each step's action, in units of ``tokens``. Linear, from the first on;
    `agent_r1.rewards.overlong` is a punishment that starts near a limit."""
    return -steps.action_tokens / parameters.tokens

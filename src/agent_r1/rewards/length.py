"""A price on action tokens: of two equally good trajectories the shorter one earns more."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agent_r1.rewards.base import Steps, TermParameters


class LengthParameters(TermParameters):
    """``reward.terms.length`` in ``conf/``."""

    tokens: int = Field(1000, gt=0)
    """Number of action tokens that cost 1, before the weight."""


def length(steps: Steps, parameters: LengthParameters) -> np.ndarray:
    """Minus each step's action tokens, divided by ``tokens``.

    Linear from the first token; `agent_r1.rewards.overlong` penalises only near a limit.
    """
    return -steps.action_tokens / parameters.tokens

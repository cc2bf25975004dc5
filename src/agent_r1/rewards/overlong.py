"""DAPO's soft penalty on trajectories close to the length limit.

Q. Yu et al., "DAPO" (2025), https://arxiv.org/abs/2503.14476, eq. 13: 0 up to max_length - buffer
tokens, then linearly down to -1 at max_length, and -1 beyond. A hard limit alone scores a long but
sound trajectory as wrong; the penalty warns the policy before the limit.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from agent_r1.parameters import ParameterError
from agent_r1.rewards.base import Steps, TermParameters


class OverlongParameters(TermParameters):
    """``reward.terms.overlong`` in ``conf/``."""

    max_length: int = Field(256, gt=0)
    """Action tokens of a trajectory at which the penalty reaches -1."""
    buffer: int = Field(64, gt=0)
    """Tokens before ``max_length`` over which the penalty grows."""

    @model_validator(mode="after")
    def _starts_above_zero(self) -> OverlongParameters:
        if self.buffer > self.max_length:
            raise ParameterError("buffer must not be larger than max_length")
        return self


def overlong(steps: Steps, parameters: OverlongParameters) -> np.ndarray:
    """In [-1, 0] on the last step of each trajectory, 0 elsewhere.

    Counts the action tokens of all steps; tool results do not count.
    """
    trajectories = steps.trajectories
    count = len(trajectories.ids)
    length = np.bincount(trajectories.of_row, steps.action_tokens, count)
    excess = length - (parameters.max_length - parameters.buffer)
    values = np.zeros(len(steps.action_tokens))
    values[trajectories.last_rows] = -np.clip(excess / parameters.buffer, 0, 1)
    return values

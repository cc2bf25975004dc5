"""A reward for a well-formed answer, a penalty for malformed turns."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agent_r1.rewards.base import Steps, TermParameters


class FormatParameters(TermParameters):
    """``reward.terms.format`` in ``conf/``."""

    weight: float = 0.1
    """Small compared with the outcome: it helps while no answer is right yet."""
    malformed_penalty: float = Field(0.0, ge=0)
    """Subtracted for each malformed or cut turn, before the weight."""


def well_formed(steps: Steps, parameters: FormatParameters) -> np.ndarray:
    """1 on the answering step, minus the penalty on each malformed or cut turn."""
    values = np.zeros(len(steps.action_type))
    values[steps.answering_rows()] = 1.0
    broken = np.array([kind in ("malformed", "cut") for kind in steps.action_type], bool)
    return values - parameters.malformed_penalty * broken

"""Was the final answer right?"""

from __future__ import annotations

from typing import Literal

import numpy as np

from agent_r1.rewards.answers import METRICS, extract_answer
from agent_r1.rewards.base import Steps, TermParameters


class OutcomeParameters(TermParameters):
    """``reward.terms.outcome`` in ``conf/``."""

    metric: Literal["exact_match", "f1", "substring"] = "exact_match"
    """How the answer is compared, see `agent_r1.rewards.answers`."""


def outcome(steps: Steps, parameters: OutcomeParameters) -> np.ndarray:
    """The metric in [0, 1] on the answering step, 0 elsewhere: once per trajectory."""
    metric = METRICS[parameters.metric]
    values = np.zeros(len(steps.action_type))
    for row in steps.answering_rows():
        values[row] = metric(extract_answer(steps.action_text[row]), steps.answers[row])
    return values

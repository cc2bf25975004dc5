"""The reward for a right final answer."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from agent_r1.rewards.answers import ANSWER_METRICS, coverage, extract_answer, numeric
from agent_r1.rewards.base import Steps, TermParameters


class OutcomeParameters(TermParameters):
    """``reward.terms.outcome`` in ``conf/``."""

    metric: Literal["exact_match", "f1", "substring", "numeric", "coverage", "environment"] = (
        "exact_match"
    )
    """How the answer is compared; see `agent_r1.rewards.answers`. ``coverage`` uses the structured
    ``answer`` in the task's payload (FanOutQA) if there is one. ``environment`` takes the
    environment's reward of the last step instead: hidden tests, a verifier, a won game."""
    tolerance: float = Field(1e-6, ge=0)
    """For ``numeric``: largest allowed difference, relative to the accepted number."""


def outcome(steps: Steps, parameters: OutcomeParameters) -> np.ndarray:
    """The metric, in [0, 1], on the answering step and 0 elsewhere: once per trajectory.

    With ``environment``: the environment's reward on the last step, NaN if it gave none.
    """
    values = np.zeros(len(steps.action_type))
    if parameters.metric == "environment":
        last = steps.trajectories.last_rows
        values[last] = steps.env_reward[last]
        return values
    for row in steps.answering_rows():
        said = extract_answer(steps.action_text[row])
        if parameters.metric == "coverage":
            payload = json.loads(steps.payloads[row] or "{}")
            references = [payload["answer"]] if "answer" in payload else steps.answers[row]
            values[row] = max((coverage(said, each) for each in references), default=0.0)
        else:
            values[row] = _metric(parameters)(said, steps.answers[row])
    return values


def _metric(parameters: OutcomeParameters) -> Callable[[str, Sequence[str]], float]:
    if parameters.metric == "numeric":
        return functools.partial(numeric, tolerance=parameters.tolerance)
    return ANSWER_METRICS[parameters.metric]

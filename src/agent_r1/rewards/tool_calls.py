"""Shaping: were the tool calls valid?"""

from __future__ import annotations

import json

import numpy as np

from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.schemas import SchemaError


class ToolCallParameters(TermParameters):
    """``reward.terms.tool_calls`` in ``conf/``."""

    valid_call: float = 0.1
    """For each call that the tool answered."""
    failed_call: float = -0.2
    """For each call that failed. A tool that was unavailable is nobody's fault: 0."""


def tool_calls(steps: Steps, parameters: ToolCallParameters) -> np.ndarray:
    """The sum over the step's tool calls.

    Raises:
        SchemaError: a row's ``tool_results`` is not a JSON list of objects with a status.
    """
    values = np.zeros(len(steps.tool_results))
    for row, text in enumerate(steps.tool_results):
        if text == "[]":
            continue
        try:
            statuses = [result["status"] for result in json.loads(text)]
        except (ValueError, TypeError, KeyError) as error:
            raise SchemaError(
                f"table 'rollouts', row {row}: tool_results is not a JSON list of results: {error}"
            ) from None
        valid = sum(status == "ok" for status in statuses)
        failed = sum(status not in ("ok", "unavailable") for status in statuses)
        values[row] = valid * parameters.valid_call + failed * parameters.failed_call
    return values

"""A shaping reward: valid tool calls earn, failed ones cost."""

from __future__ import annotations

import numpy as np

from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.rewards.tool_results import results_by_row


class ToolCallParameters(TermParameters):
    """``reward.terms.tool_calls`` in ``conf/``."""

    valid_call: float = 0.1
    """For each call with a complete result (status ``ok``)."""
    failed_call: float = -0.2
    """For each call that failed, exceeded the budget, or had its result cut (``oversized``). An
    unavailable tool is not the agent's fault: 0."""


def tool_calls(steps: Steps, parameters: ToolCallParameters) -> np.ndarray:
    """The sum over the step's tool calls.

    Raises:
        SchemaError: a row's ``tool_results`` is not a JSON list of objects with a status.
    """
    values = np.zeros(len(steps.tool_results))
    for row, results in results_by_row(steps, "status"):
        statuses = [result["status"] for result in results]
        valid = sum(status == "ok" for status in statuses)
        failed = sum(status not in ("ok", "unavailable") for status in statuses)
        values[row] = valid * parameters.valid_call + failed * parameters.failed_call
    return values

"""A price on what a trajectory spends: tool calls, and tokens read and written."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.rewards.tool_results import results_by_row


class CostParameters(TermParameters):
    """``reward.terms.cost`` in ``conf/``: prices, in units of reward before the weight."""

    tool_call: float = Field(0.01, ge=0)
    """Price of each tool call, whatever its result."""
    prompt_tokens: float = Field(0.0, ge=0)
    """Price of 1000 tokens visible before an action: a server's price for input."""
    action_tokens: float = Field(0.0, ge=0)
    """Price of 1000 tokens of an action: a server's price for output."""


def cost(steps: Steps, parameters: CostParameters) -> np.ndarray:
    """Minus the cost of each step.

    Time has no price: only the timings table depends on the clock, so scoring again gives the same
    rewards.

    Raises:
        SchemaError: a row's ``tool_results`` is not a JSON list of results.
    """
    calls = np.zeros(len(steps.action_type))
    for row, results in results_by_row(steps):
        calls[row] = len(results)
    tokens = (
        steps.prompt_tokens * parameters.prompt_tokens
        + steps.action_tokens * parameters.action_tokens
    )
    return -(calls * parameters.tool_call + tokens / 1000)

"""What a trajectory spent: calls of tools, and tokens that the model read and wrote."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.rewards.tool_results import results_by_row


class CostParameters(TermParameters):
    """``reward.terms.cost`` in ``conf/``: prices, in units of reward before the weight."""

    tool_call: float = Field(0.01, ge=0)
    """Of each tool call, whatever came of it."""
    prompt_tokens: float = Field(0.0, ge=0)
    """Of 1000 tokens in front of an action: what a server charges for input."""
    action_tokens: float = Field(0.0, ge=0)
    """Of 1000 tokens of an action: what a server charges for output."""


def cost(steps: Steps, parameters: CostParameters) -> np.ndarray:
    """Minus what each step spent.

    Time is not in it: no table but the timings knows of the clock, so that scoring again gives the
    same.

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

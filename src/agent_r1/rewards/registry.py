"""Reward terms by the name that stands in ``conf/``: a new one is a file here and a line below."""

from __future__ import annotations

from agent_r1.parameters import ParameterError, nearest
from agent_r1.rewards.base import Term
from agent_r1.rewards.environment import EnvironmentRewardParameters, environment
from agent_r1.rewards.format import FormatParameters, well_formed
from agent_r1.rewards.outcome import OutcomeParameters, outcome
from agent_r1.rewards.overlong import OverlongParameters, overlong
from agent_r1.rewards.tool_calls import ToolCallParameters, tool_calls

TERMS: dict[str, Term] = {
    "outcome": Term(OutcomeParameters, outcome),
    "format": Term(FormatParameters, well_formed),
    "tool_calls": Term(ToolCallParameters, tool_calls),
    "overlong": Term(OverlongParameters, overlong),
    "environment": Term(EnvironmentRewardParameters, environment),
}


def term(name: str) -> Term:
    """The term of this name.

    Raises:
        ParameterError: there is none; the nearest known one is named.
    """
    if name not in TERMS:
        raise ParameterError(f"unknown reward term '{name}'.{nearest(name, TERMS)}")
    return TERMS[name]

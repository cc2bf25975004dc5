"""Reward terms by their name in ``conf/``. To add one, add a file here and a line below.

One from another package is named by its import path: ``my_package.politeness:TERM``.
"""

from __future__ import annotations

from agent_r1.extras import named_object
from agent_r1.rewards.base import Term
from agent_r1.rewards.cost import CostParameters, cost
from agent_r1.rewards.environment import EnvironmentRewardParameters, environment
from agent_r1.rewards.evidence import EvidenceParameters, evidence
from agent_r1.rewards.format import FormatParameters, well_formed
from agent_r1.rewards.judge import JudgeParameters, judge
from agent_r1.rewards.length import LengthParameters, length
from agent_r1.rewards.outcome import OutcomeParameters, outcome
from agent_r1.rewards.overlong import OverlongParameters, overlong
from agent_r1.rewards.repetition import RepetitionParameters, repetition
from agent_r1.rewards.tool_calls import ToolCallParameters, tool_calls

TERMS: dict[str, Term] = {
    "outcome": Term(OutcomeParameters, outcome),
    "format": Term(FormatParameters, well_formed),
    "tool_calls": Term(ToolCallParameters, tool_calls),
    "length": Term(LengthParameters, length),
    "overlong": Term(OverlongParameters, overlong),
    "cost": Term(CostParameters, cost),
    "repetition": Term(RepetitionParameters, repetition),
    "evidence": Term(EvidenceParameters, evidence),
    "judge": Term(JudgeParameters, judge),
    "environment": Term(EnvironmentRewardParameters, environment),
}


def term(name: str) -> Term:
    """The term with this name or import path.

    Raises:
        ParameterError: as `named_object`.
    """
    return named_object("reward term", name, TERMS, Term)

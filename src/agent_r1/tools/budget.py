"""What a trajectory has spent on tools."""

from __future__ import annotations

from agent_r1.tools.parameters import BudgetParameters


class ToolBudget:
    """Counts calls, seconds and tokens of one trajectory against its limits.

    It is asked before calls run: what a call then needs is spent, even beyond the limit.
    """

    def __init__(self, parameters: BudgetParameters):
        self.parameters = parameters
        self.calls = 0
        self.seconds = 0.0
        self.tokens = 0

    def admit(self, calls: int) -> int:
        """How many of these calls may run: the first ones of an action. They count as spent."""
        spent = self.parameters
        if _reached(self.seconds, spent.seconds) or _reached(self.tokens, spent.tokens):
            return 0
        admitted = calls if spent.calls is None else min(calls, spent.calls - self.calls)
        self.calls += admitted
        return admitted

    @property
    def exhausted(self) -> str:
        """For the agent: the limit that is reached, first of calls, seconds, tokens."""
        limits = self.parameters
        if _reached(self.calls, limits.calls):
            return f"{limits.calls} calls"
        if _reached(self.seconds, limits.seconds):
            return f"{limits.seconds:g} s"
        return f"{limits.tokens} tokens"


def _reached(spent: float, limit: float | None) -> bool:
    return limit is not None and spent >= limit

"""What a trajectory has spent on tools."""

from __future__ import annotations

from agent_r1.tools.parameters import BudgetParameters


class ToolBudget:
    """Counts calls, seconds and tokens of one trajectory against its limits.

    It is checked before calls run, so a call that has started may exceed it.
    """

    def __init__(self, parameters: BudgetParameters):
        self.parameters = parameters
        self.calls = 0
        self.seconds = 0.0
        self.tokens = 0

    def admit(self, calls: int) -> int:
        """How many of an action's calls may run, the first ones first; they count as spent."""
        limits = self.parameters
        if _reached(self.seconds, limits.seconds) or _reached(self.tokens, limits.tokens):
            return 0
        admitted = calls if limits.calls is None else min(calls, limits.calls - self.calls)
        self.calls += admitted
        return admitted

    @property
    def exhausted(self) -> str:
        """The reached limit, as text for the agent; calls before seconds before tokens."""
        limits = self.parameters
        if _reached(self.calls, limits.calls):
            return f"{limits.calls} calls"
        if _reached(self.seconds, limits.seconds):
            return f"{limits.seconds:g} s"
        return f"{limits.tokens} tokens"


def _reached(spent: float, limit: float | None) -> bool:
    return limit is not None and spent >= limit

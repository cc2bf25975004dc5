"""The settings of tools in ``environment.options``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from agent_r1.parameters import ParameterError, Parameters, check_address


class BudgetParameters(Parameters):
    """``environment.options.budget``: what one trajectory may spend on tools; None: no limit."""

    calls: int | None = Field(None, ge=1)
    """Calls, whatever their outcome; a call with several attempts counts once."""
    seconds: float | None = Field(None, gt=0)
    """Seconds in tools, summed over calls and attempts. Like every time limit, it makes outcomes
    depend on the machine."""
    tokens: int | None = Field(None, ge=1)
    """Tokens of the observations that hold tool results, including the chat template's."""
    when_spent: Literal["end", "tell"] = "end"
    """What a call over the budget does. ``end``: the trajectory is truncated (``tool_budget``).
    ``tell``: the agent reads that the budget is used up, and may still answer."""


class McpParameters(Parameters):
    """An entry of ``environment.options.mcp``: a server whose tools the agent gets."""

    command: tuple[str, ...] = ()
    """Starts a server that speaks over stdio: the program and its arguments."""
    url: str = ""
    """Address of a server that speaks streamable HTTP; instead of ``command``."""
    tools: tuple[str, ...] | None = None
    """Names of the tools that the agent gets, in this order; None for all."""
    start_timeout_s: float = Field(30.0, gt=0)
    """Seconds for the server to start."""
    pass_environment: tuple[str, ...] = ()
    """Environment variables that a stdio server gets in addition to PATH, HOME and the like."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        return url and check_address(url)

    @model_validator(mode="after")
    def _has_one_address(self) -> McpParameters:
        if bool(self.command) == bool(self.url):
            raise ParameterError("an MCP server needs either `command` or `url`")
        return self

    @property
    def address(self) -> str:
        """URL or command line, for messages."""
        return self.url or " ".join(self.command)


class ToolParameters(Parameters):
    """How tool calls run; a tool may set its own limits (`agent_r1.tools.tool`)."""

    timeout_s: float = Field(10.0, gt=0)
    """Seconds per attempt."""
    attempts: int = Field(3, ge=1)
    """Attempts of a failing call; the last failure is final."""
    backoff_s: float = Field(0.0, ge=0)
    """Seconds before the second attempt, for a server that is overloaded. There is no jitter, so
    that runs repeat."""
    backoff_factor: float = Field(2.0, ge=1)
    """Each further wait is longer by this factor."""
    backoff_max_s: float = Field(30.0, ge=0)
    """Longest wait, in seconds."""
    concurrency: int | None = Field(None, ge=1)
    """Calls of one tool that run at once, over all trajectories. Others wait, and the wait counts
    towards their ``step_timeout_s``. None: as many as there are worker threads or processes."""
    max_result_chars: int = Field(4000, ge=1)
    """Characters of a result that the agent reads; the rest is cut."""
    unavailable_after: int | None = Field(32, ge=1)
    """When this many calls of one tool in a row, over all trajectories, fail with an exception or a
    timeout, the tool counts as down (status ``unavailable``), and trajectories that met it are not
    scored. At the end, so does a tool that failed for all of several callers. None: never."""
    budget: BudgetParameters = BudgetParameters()
    """What one trajectory may spend."""
    mcp: dict[str, McpParameters] = Field(default_factory=dict)
    """Servers whose tools the agent gets in addition to the environment's; name → how to reach
    it."""

    def backoff(self, attempts: int) -> float:
        """Seconds to wait after this many failed attempts."""
        return min(self.backoff_s * self.backoff_factor ** (attempts - 1), self.backoff_max_s)

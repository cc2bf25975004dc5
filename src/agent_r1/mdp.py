"""The vocabulary of the Markov decision process of an LLM agent.

1. **State** s_t: the tokens that the policy sees before step t: the task prompt, its own earlier
   tokens, and the observations. If the context is full, the policy sees a window: the first
   ``prefix`` tokens, then everything from ``start`` on (`visible_context`).
2. **Action** a_t: one whole model turn, up to and including the stop token. It may hold tool
   calls or a final answer. Text that is neither is an action too (`ActionType.MALFORMED`), and so
   is a turn that ran out of tokens (`ActionType.CUT`).
3. **Transition**: the environment executes the action and returns a `Transition`.
4. **Reward**: one per step; the return of a trajectory is their sum. ``None`` means *not scored*
   (the infrastructure failed), which differs from zero.
5. **End**: *terminated* (the environment ended the episode) or *truncated* (a limit was reached),
   always with an `EndReason`. The value after the last step of a terminated trajectory is zero; a
   truncated trajectory may have another one.

This module imports nothing from the project. Environments, engines, estimators and tables share
these types without depending on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ActionType(StrEnum):
    """The kind of a model turn."""

    TOOL_CALL = "tool_call"
    ANSWER = "answer"
    MALFORMED = "malformed"
    """Neither an answer nor a parseable tool call. The agent sees the error."""
    CUT = "cut"
    """The token budget ended the turn before the stop token. It is never parsed: a cut tool call
    could be read as an answer."""
    NONE = "none"
    """No action was sampled: the prompt did not fit, or the environment failed to reset."""


class EndReason(StrEnum):
    """Why a trajectory ended."""

    ANSWERED = "answered"
    ENVIRONMENT = "environment"
    MAX_STEPS = "max_steps"
    TOKEN_BUDGET = "token_budget"
    CONTEXT_OVERFLOW = "context_overflow"
    TOOL_BUDGET = "tool_budget"
    PROMPT_TOO_LONG = "prompt_too_long"
    INFRASTRUCTURE = "infrastructure"


class ToolStatus(StrEnum):
    """The outcome of a tool call."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    UNKNOWN_TOOL = "unknown_tool"
    BAD_ARGUMENTS = "bad_arguments"
    OVERSIZED = "oversized"
    BUDGET = "budget"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A request to run one tool."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The recorded outcome of one tool call. Results are in call order."""

    name: str
    status: ToolStatus
    content: str
    """The text for the agent: the tool's output, or the error."""
    attempts: int = 1
    """Number of attempts; 0 for a call that was not made (budget, unavailable)."""
    latency_ms: float = 0.0
    """Wall-clock milliseconds. Stored only in ``rollout_timings``, which is never compared."""


@dataclass(frozen=True, slots=True)
class Action:
    """One model turn, parsed."""

    type: ActionType
    text: str
    """The turn's text without the stop token."""
    tool_calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    """The final answer; set if and only if ``type`` is ANSWER."""
    code: str | None = None
    """The first code block of the turn, for environments that execute code."""
    error: str | None = None
    """Why the turn is malformed, as a text that helps the agent."""


@dataclass(frozen=True, slots=True)
class Transition:
    """The environment's response to an action."""

    observation: dict[str, Any] | None
    """None if the episode terminated."""
    reward: float | None
    """None means not scored (an infrastructure failure), which differs from zero."""
    terminated: bool = False
    truncated: bool = False
    end_reason: EndReason | None = None
    tool_results: tuple[ToolResult, ...] = ()
    info: dict[str, Any] = field(default_factory=dict)
    state_key: str = field(default="", compare=False)
    """Key of the next state; empty if there is none."""


class EnvironmentFailure(Exception):
    """An environment's infrastructure failed.

    The trajectory ends truncated, with the reason ``infrastructure`` and a null reward, as the
    failure says nothing about the policy.
    """


def visible_context(
    stream: Sequence[int],
    prefix: int,
    start: int,
    drops: Sequence[int] | None = None,
) -> list[int]:
    """The tokens of ``stream`` that the policy saw.

    ``stream[:prefix] + stream[max(prefix, start):]``, without the positions in ``drops``.

    Args:
        stream: all tokens of the trajectory so far, context and actions.
        prefix: number of leading tokens that are always kept (system prompt and task).
        start: position at which the kept tail begins.
        drops: flat ``[begin, end)`` pairs of stream positions that are removed.

    Raises:
        ValueError: ``drops`` is not a list of pairs, or a position is negative.
    """
    if prefix < 0 or start < 0:
        raise ValueError(f"prefix and start must be >= 0, got {prefix} and {start}")
    dropped = list(drops or ())
    if len(dropped) % 2:
        raise ValueError(f"drops must hold [begin, end) pairs, got {len(dropped)} numbers")
    keep = [True] * len(stream)
    for position in range(prefix, min(max(prefix, start), len(stream))):
        keep[position] = False
    for begin, end in zip(dropped[::2], dropped[1::2], strict=True):
        if begin < 0 or end < begin:
            raise ValueError(f"a drop must be 0 <= begin <= end, got [{begin}, {end})")
        for position in range(begin, min(end, len(stream))):
            keep[position] = False
    return [token for token, kept in zip(stream, keep, strict=True) if kept]

"""The Markov decision process that an LLM agent lives in: its vocabulary, and nothing else.

1. **State** s_t: the token stream that the policy sees before step t — the task prompt, its own
   earlier tokens, and what the environment answered. Past the context limit a window is kept:
   the first ``prefix`` tokens always, then everything from ``start`` on (`visible_context`).
2. **Action** a_t: one whole model turn, up to and including the stop token. It may hold tool
   calls or a final answer; text that is neither is an action too (`ActionType.MALFORMED`), and so
   is a turn that ran out of tokens (`ActionType.CUT`).
3. **Transition**: the environment executes the action for real and returns a `Transition`.
4. **Reward**: per step; the return of a trajectory is the sum. ``None`` means *not scored*
   (the infrastructure failed), which is not zero.
5. **End**: *terminated* (the environment says so) or *truncated* (a limit was hit), always with
   an `EndReason`. A truncated trajectory has a value after its last step; a terminated one has not.

This module imports nothing of the project: environments, engines, estimators and tables all speak
it without knowing each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ActionType(StrEnum):
    """What one model turn turned out to be."""

    TOOL_CALL = "tool_call"
    ANSWER = "answer"
    MALFORMED = "malformed"
    """Neither an answer nor a parseable tool call; the agent is told what was wrong."""
    CUT = "cut"
    """The token budget ended the turn before the stop token: never parsed (pitfall: a cut tool
    call read as an answer)."""
    NONE = "none"
    """There was no action: the prompt did not fit, or the environment failed to reset."""


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
    """What became of one tool call."""

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
    """The recorded outcome of one tool call; results stand in call order."""

    name: str
    status: ToolStatus
    content: str
    """What the agent reads: the tool's output, or what went wrong."""
    attempts: int = 1
    """Tries, the first one included; 0 for a call that was not made (budget, unavailable)."""
    latency_ms: float = 0.0
    """Wall-clock; it goes to ``rollout_timings``, never into a table that is compared."""


@dataclass(frozen=True, slots=True)
class Action:
    """One model turn, parsed."""

    type: ActionType
    text: str
    """The turn's text without the stop token."""
    tool_calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    """The final answer; set exactly when ``type`` is ANSWER."""
    code: str | None = None
    """The first code block of the turn, for environments that execute code."""
    error: str | None = None
    """Why the turn is malformed, in words that the agent can act on."""


@dataclass(frozen=True, slots=True)
class Transition:
    """What the environment answered to an action."""

    observation: dict[str, Any] | None
    """None where nothing follows: the episode ended."""
    reward: float | None
    """None means not scored (an infrastructure failure), which is not zero."""
    terminated: bool = False
    truncated: bool = False
    end_reason: EndReason | None = None
    tool_results: tuple[ToolResult, ...] = ()
    info: dict[str, Any] = field(default_factory=dict)
    state_key: str = field(default="", compare=False)
    """Names the state that follows; empty where none does."""


class EnvironmentFailure(Exception):
    """Raised by an environment whose infrastructure failed.

    The trajectory ends truncated, with reason ``infrastructure`` and a null reward: it tells
    nothing about the policy.
    """


def visible_context(
    stream: Sequence[int],
    prefix: int,
    start: int,
    drops: Sequence[int] | None = None,
) -> list[int]:
    """The tokens of ``stream`` that the policy saw.

    ``stream[:prefix] + stream[max(prefix, start):]``, minus the positions covered by ``drops``.

    Args:
        stream: all tokens of the trajectory so far, context and actions.
        prefix: number of leading tokens that are always kept (system prompt and task).
        start: where the kept tail begins.
        drops: flat ``[begin, end)`` pairs of stream positions that were removed.

    Raises:
        ValueError: ``drops`` is not made of pairs, or a position is negative.
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

"""Scripts: the turns of a scripted agent, stored in a task's payload.

``payload["script"]`` is a list of turns that solves the task. ``payload["mistakes"]`` is a list of
scripts that do not solve it. A turn is ``{"call": {"name", "arguments"}}`` or ``{"answer": text}``;
both may also have a ``thought``. The source that makes a task writes its script, so the scripted
agent needs to know nothing about kinds of tasks.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agent_r1.errors import UserError
from agent_r1.mdp import Action, ActionType, ToolCall


class ScriptFormatError(UserError, ValueError):
    """A script in a payload is malformed. The message names the turn."""


class Turn(NamedTuple):
    """One turn of the scripted agent."""

    thought: str
    """Text before the action."""
    action: Action


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A turn that calls a tool, in the payload's format."""
    return {"call": {"name": tool, "arguments": arguments}}


def answer(text: str) -> dict[str, Any]:
    """A turn that answers, in the payload's format."""
    return {"answer": text}


def choose_script(payload: Mapping[str, Any], error_rate: float, draw: random.Random) -> list[Turn]:
    """The task's script, or with probability ``error_rate`` one of its mistakes, if it has any.

    Raises:
        ScriptFormatError: the chosen script is malformed.
    """
    mistakes = payload.get("mistakes")
    wrong = draw.random() < error_rate
    return read_script(draw.choice(mistakes) if wrong and mistakes else payload["script"])


def read_script(turns: Sequence[Any]) -> list[Turn]:
    """The turns of a script.

    Raises:
        ScriptFormatError: a turn is malformed.
    """
    if not isinstance(turns, list) or not turns:
        raise ScriptFormatError("expected a list of turns")
    return [_read(turn, number) for number, turn in enumerate(turns)]


def _read(turn: Any, number: int) -> Turn:
    match turn:
        case {"call": {"name": str(name), "arguments": dict(arguments)}}:
            action = Action(ActionType.TOOL_CALL, "", tool_calls=(ToolCall(name, arguments),))
        case {"answer": str(text)}:
            action = Action(ActionType.ANSWER, "", answer=text)
        case _:
            raise ScriptFormatError(f"turn {number} is neither a call nor an answer: {turn!r:.80}")
    return Turn(turn.get("thought", ""), action)

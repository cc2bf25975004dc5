"""Scripts: the turns of a scripted agent, as a task's payload carries them.

``payload["script"]`` is a list of turns that solves the task, ``payload["mistakes"]`` a list of
such lists that do not. A turn is ``{"call": {"name", "arguments"}}`` or ``{"answer": text}``,
either with a ``thought`` in front. Whoever makes a task knows best how it is solved; nobody else
needs to know what kind of task it is.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agent_r1.errors import UserError
from agent_r1.mdp import Action, ActionType, ToolCall


class ScriptFormatError(UserError, ValueError):
    """A script in a payload is malformed; the message says which turn and key."""


class Turn(NamedTuple):
    """What the scripted agent says and does at once."""

    thought: str
    """Words before the action."""
    action: Action


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A turn that calls a tool, as a payload holds it."""
    return {"call": {"name": tool, "arguments": arguments}}


def answer(text: str) -> dict[str, Any]:
    """A turn that answers, as a payload holds it."""
    return {"answer": text}


def choose_script(payload: Mapping[str, Any], error_rate: float, draw: random.Random) -> list[Turn]:
    """The right turns, or with probability ``error_rate`` one of the mistakes, if there are any.

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

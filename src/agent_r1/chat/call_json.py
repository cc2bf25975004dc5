"""Reads the JSON of a call strictly: the result can be saved, and errors say what is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from agent_r1.mdp import ToolCall
from agent_r1.tools.unicode import valid_unicode

_MAX_DEPTH = 64
"""Levels of JSON in a call; Python's own parser gives up at about a thousand."""


class Malformed(Exception):
    """The turn cannot be read; the message is for the agent."""


def skip_whitespace(text: str, position: int) -> int:
    """The position of the first character from ``position`` on that is not whitespace."""
    return position + len(text[position:]) - len(text[position:].lstrip())


def read_value(text: str, position: int = 0) -> tuple[Any, int]:
    """The JSON value at ``position``, and where it ends.

    Raises:
        Malformed: the text there is not JSON, or has infinite numbers or endless nesting.
    """
    try:
        value, end = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise Malformed(
            f"the tool call is not valid JSON ({error.msg}, character {error.pos - position})"
        ) from None
    except RecursionError:
        raise Malformed("the tool call is nested too deeply") from None
    except ValueError as error:
        raise Malformed(f"the tool call is not valid JSON ({str(error)[:60]})") from None
    return value, end


def read_call(value: Any, arguments: str = "arguments") -> ToolCall:
    """The call that a JSON object with a name and arguments describes.

    Args:
        arguments: the key of the arguments; ``parameters`` for Llama.

    Raises:
        Malformed: a key is missing or has the wrong type, or a value cannot be saved.
    """
    if not isinstance(value, dict):
        raise Malformed("the tool call is not a JSON object")
    for key, kind, about in (("name", str, "a string"), (arguments, dict, "an object")):
        if key not in value:
            raise Malformed(f"the tool call has no '{key}'")
        if not isinstance(value[key], kind):
            raise Malformed(f"'{key}' of the tool call is not {about}")
    check_json(value)
    return ToolCall(value["name"], value[arguments])


def write_value(value: Mapping[str, Any]) -> str:
    """JSON as chat templates write it."""
    return json.dumps(value, ensure_ascii=False)


def check_json(value: Any, depth: int = _MAX_DEPTH) -> None:
    """Refuse JSON that cannot be saved: unpaired surrogates, endless nesting.

    Raises:
        Malformed: it holds one of these.
    """
    if not depth:
        raise Malformed("the tool call is nested too deeply")
    if isinstance(value, str) and valid_unicode(value) != value:
        raise Malformed("the tool call has an unpaired surrogate")
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for part in value:
            check_json(part, depth - 1)


def _finite(digits: str) -> float:
    """JSON has no infinity: ``1e999`` must not become one."""
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)

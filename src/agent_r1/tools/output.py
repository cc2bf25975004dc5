"""What a tool returned, as the agent reads it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from agent_r1.tools.unicode import valid_unicode


class ToolOutput(NamedTuple):
    """A result as text, cut to the length that is kept."""

    text: str
    length: int
    """Characters before the cut."""


def output(value: Any, kept: int) -> ToolOutput:
    """A string as it is, None as ``done``, anything else as JSON; at most ``kept`` characters.

    Raises:
        TypeError: the value is not JSON (a set, an object, NaN): its text would mean nothing to the
            agent, or differ from run to run.
    """
    if isinstance(value, str):
        text = value
    elif value is None:
        text = "done"
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"returned what is neither text nor JSON: {error}") from None
    text = valid_unicode(text)
    return ToolOutput(text[:kept], len(text))

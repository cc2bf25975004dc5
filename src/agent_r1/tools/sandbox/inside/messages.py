"""The messages between a solution and its tester: JSON, one line each."""

from __future__ import annotations

import json
from typing import Any

MAX_CHARS = 16_000_000
"""Longest message, in characters; the tester does not read further."""


def write(message: dict[str, Any]) -> str:
    """A message as one line."""
    return json.dumps(message) + "\n"


def read(line: str) -> dict[str, Any]:
    """A line as a message.

    Raises:
        ValueError: it is not a JSON object.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise ValueError("not a message")
    return message

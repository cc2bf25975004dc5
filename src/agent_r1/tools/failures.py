"""Failures as text for the agent and the tables: short, and the same in every run."""

from __future__ import annotations

import re
import traceback

from agent_r1.tools.unicode import valid_unicode

MAX_CHARS = 200
"""Longest message, in characters: the agent needs to know what was wrong, in short."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Memory addresses differ from run to run."""


class BadArguments(ValueError):
    """A call's arguments are wrong; the message is for the agent.

    Raised when they do not fit the tool's schema. A tool may raise it for what the schema cannot
    express. The agent gets the message at once; the call is not retried, and does not count
    towards an outage.
    """


class RemoteFailure(Exception):
    """A call failed in another process or on a server, or raised something that is not an
    `Exception`. The message is all that is known."""


def short(message: str) -> str:
    """``message`` on one line of at most `MAX_CHARS` characters, without memory addresses."""
    line = " ".join(_ADDRESS.sub("", valid_unicode(message)).split())
    return line if len(line) <= MAX_CHARS else line[:MAX_CHARS] + " …"


def reason(error: BaseException) -> str:
    """``type: message`` of an exception; of a `RemoteFailure`, the message."""
    if isinstance(error, RemoteFailure):
        return short(str(error))
    # TracebackException survives exceptions whose own __str__ raises.
    message = str(traceback.TracebackException(type(error), error, None))
    return short(f"{type(error).__name__}: {message}" if message else type(error).__name__)

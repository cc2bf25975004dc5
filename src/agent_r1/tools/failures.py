"""Failures as text for the agent and the tables: short, and the same in every run."""

from __future__ import annotations

import re
import traceback

from agent_r1.tools.unicode import valid_unicode

MAX_CHARS = 200
"""Of a message: the agent needs what was wrong, not a page of it."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""Memory addresses differ from run to run."""


class BadArguments(ValueError):
    """A call's arguments are wrong; the message is for the agent.

    Raised where they do not fit the tool's schema. A tool raises it itself for what the schema
    cannot say: the agent is told at once, nothing is tried again, and it is no sign of an outage.
    """


class RemoteFailure(Exception):
    """A call failed in another process, on a server, or with what is no `Exception`; the message
    says all that is known."""


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

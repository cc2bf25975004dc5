"""How a sandboxed program ended, and the verdict on a solution."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent_r1.errors import UserError


class SandboxUnavailable(UserError, RuntimeError):
    """This machine does not support the isolation asked for; the message has the remedy."""


class SandboxError(RuntimeError):
    """The sandbox itself failed, which says nothing about the program."""


class TestsUnusable(ValueError):
    """The tests do not work for any solution: a defect of the task, not a reward of 0."""

    __test__ = False  # not a test class, whatever pytest thinks of its name


class Status(StrEnum):
    """How a program ended."""

    OK = "ok"
    """Exit code 0."""
    ERROR = "error"
    """Another exit code, or a signal (then the exit code is its number, negative)."""
    TIMEOUT = "timeout"
    """Too much wall-clock or processor time."""
    MEMORY = "memory"
    """Too much memory, or a MemoryError that was not caught."""
    DISK = "disk"
    """Too much in its private folder."""
    PROCESSES = "processes"
    """More processes than allowed, where the kernel did not refuse them."""
    OUTPUT = "output"
    """More output than allowed; what was allowed is kept."""


@dataclass(frozen=True)
class SandboxResult:
    """How a program ended. What it printed is its own claim: never read a reward from it."""

    status: Status
    exit_code: int | None
    """None: it was killed from outside."""
    stdout: str
    stderr: str
    seconds: float
    """Wall-clock time from the program's start to its end."""


@dataclass(frozen=True)
class Verdict:
    """What the tests say about a solution."""

    passed: bool
    """Whether all tests ran to the end, on values that the solution returned, and held."""
    reason: str
    """Why, in a few words that may be shown to the agent: they never quote a test."""
    seconds: float
    """Wall-clock time, start-up included."""

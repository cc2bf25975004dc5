"""What became of a sandboxed program, and of a solution under test."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent_r1.errors import UserError


class SandboxUnavailable(UserError, RuntimeError):
    """The machine does not give the isolation that was asked for; the message has the remedy."""


class SandboxError(RuntimeError):
    """The sandbox itself failed: nothing is known about the program."""


class TestsUnusable(ValueError):
    """The tests cannot judge any solution: a defect of the task, and no reward of 0."""

    __test__ = False  # not a test class, whatever pytest thinks of its name


class Status(StrEnum):
    """How a program ended."""

    OK = "ok"
    """Exit code 0."""
    ERROR = "error"
    """Another exit code, or a signal (then the exit code is its number, negative)."""
    TIMEOUT = "timeout"
    """Too long on the clock or on the processor."""
    MEMORY = "memory"
    """Too much memory, or a MemoryError that nobody caught."""
    DISK = "disk"
    """Too much in its private folder."""
    PROCESSES = "processes"
    """More processes than allowed, where the kernel did not refuse them."""
    OUTPUT = "output"
    """More output than allowed; what was allowed is kept."""


@dataclass(frozen=True)
class SandboxResult:
    """A program's end. What it printed is its own claim: no reward may be read from it."""

    status: Status
    exit_code: int | None
    """None: it was ended from outside."""
    stdout: str
    stderr: str
    seconds: float
    """On the clock, from the program's start to its end."""


@dataclass(frozen=True)
class Verdict:
    """What the tests say of a solution."""

    passed: bool
    """Every test ran to its end against values that the solution returned, and held."""
    reason: str
    """Why, in a few words that may be shown to the agent: they never quote a test."""
    seconds: float

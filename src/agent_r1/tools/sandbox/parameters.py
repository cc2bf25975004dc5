"""What a sandboxed program may use."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field, field_validator

from agent_r1.parameters import Parameters, nearest


class Level(StrEnum):
    """How a program is isolated; `agent_r1.tools.sandbox` says what each level leaves open."""

    BUBBLEWRAP = "bubblewrap"
    """Namespaces and a file system of its own, made by the program ``bwrap`` (0.8 or later)."""
    NAMESPACES = "namespaces"
    """The same, made by this package: needs root or unprivileged user namespaces."""
    RLIMITS = "rlimits"
    """Limits, seccomp and, where the kernel has it, Landlock: needs no privilege at all."""
    NONE = "none"
    """A child process with a time limit. Only for programs that are trusted."""


class SandboxParameters(Parameters):
    """Limits of one program; each run has a fresh sandbox."""

    isolation: Literal["auto"] | Level = "auto"
    """``auto``: the strongest level that this machine supports, but never ``none``."""
    timeout_s: float = Field(10.0, gt=0)
    """Wall-clock seconds from the program's start; then everything it started is killed."""
    cpu_s: int = Field(10, ge=1)
    """Seconds of processor time per process; waiting on a busy machine does not count."""
    memory_mb: int = Field(512, ge=64)
    """MB (2^20 bytes) of address space per process, and of resident memory in total."""
    file_mb: int = Field(16, ge=1)
    """MB per file."""
    disk_mb: int = Field(64, ge=1)
    """MB of all files in total."""
    processes: int = Field(32, ge=1)
    """Processes and threads at the same time, including the program itself."""
    output_chars: int = Field(20_000, ge=1)
    """Characters of stdout, and of stderr; a program that writes more is killed."""

    @field_validator("isolation", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        """Gives one message; pydantic alone gives one for each kind of value."""
        known = ("auto", *(level.value for level in Level))
        if value not in known:
            raise ValueError(f"unknown level '{value}'.{nearest(str(value), known)}")
        return value

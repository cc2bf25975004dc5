"""Stands for the sandbox in `agent_r1.tools.program`: no process, no isolation, and no waiting."""

from __future__ import annotations

from typing import Any

import pytest

from agent_r1.tools.sandbox import (
    SandboxError,
    SandboxParameters,
    SandboxResult,
    SandboxUnavailable,
    Status,
    TestsUnusable,
    Verdict,
)

_BROKEN = {
    "no sandbox": SandboxUnavailable("install bubblewrap"),
    "broken sandbox": SandboxError("the supervisor is gone"),
    "unusable tests": TestsUnusable("the tests cannot be used"),
}


def _break(program: str) -> None:
    for text, error in _BROKEN.items():
        if text in program:
            raise error


class Sandbox:
    """A program prints itself, unless it says ``boom`` or what is in `_BROKEN`."""

    asked: SandboxParameters | None = None
    """The limits of the last one."""

    def __init__(self, parameters: SandboxParameters | None = None) -> None:
        Sandbox.asked = parameters

    def run(self, program: str) -> SandboxResult:
        _break(program)
        status = Status.ERROR if "boom" in program else Status.OK
        return SandboxResult(status, 0, program, "NameError: boom", 0.1)


def install(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Put it in place; a solution with ``2 * x`` passes. Returns what was judged, in order."""
    judged: list[dict[str, Any]] = []

    def run_tests(solution: str, tests: str, **others: Any) -> Verdict:
        _break(solution)
        judged.append({"solution": solution, "tests": tests, **others})
        return Verdict("2 * x" in solution, "", 0.1)

    monkeypatch.setattr("agent_r1.tools.program.Sandbox", Sandbox)
    monkeypatch.setattr("agent_r1.tools.program.run_tests", run_tests)
    return judged

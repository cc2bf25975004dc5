"""Stands for `agent_r1.tools.sandbox`: no process, no isolation, and no waiting."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from agent_r1.parameters import Parameters


class Limits(Parameters):
    """Stands for ``SandboxParameters``."""

    timeout_s: float = 1.0


class UnavailableError(RuntimeError):
    """Stands for what a sandbox that does not work raises."""


class Sandbox:
    """A program prints itself, unless it says ``boom`` or ``no sandbox``."""

    def __init__(self, parameters: Limits) -> None:
        self.parameters = parameters

    def run(self, program: str) -> SimpleNamespace:
        if "no sandbox" in program:
            raise UnavailableError("install bubblewrap")
        status = "error" if "boom" in program else "ok"
        return SimpleNamespace(status=status, stdout=program, stderr="NameError: boom")


def install(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Put it in place; a solution with ``2 * x`` passes. Returns what was judged, in order."""
    judged: list[dict[str, Any]] = []

    def run_tests(solution: str, tests: str, **others: Any) -> SimpleNamespace:
        if "no sandbox" in solution:
            raise UnavailableError("install bubblewrap")
        judged.append({"solution": solution, "tests": tests, **others})
        return SimpleNamespace(passed="2 * x" in solution)

    module: Any = ModuleType("agent_r1.tools.sandbox")
    module.Sandbox, module.SandboxParameters, module.run_tests = Sandbox, Limits, run_tests
    for name in ("SandboxUnavailable", "SandboxError", "TestsUnusable"):
        setattr(module, name, UnavailableError)
    monkeypatch.setitem(sys.modules, "agent_r1.tools.sandbox", module)
    monkeypatch.setattr("agent_r1.tools.sandbox", module, raising=False)
    return judged

"""The levels of isolation that this machine gives: tests run at each, and their names say which.

The strongest one is tested always; the others by ``-m slow``.
"""

from __future__ import annotations

import pytest

from agent_r1.tools.sandbox import (
    Level,
    SandboxError,
    SandboxParameters,
    SandboxUnavailable,
)
from agent_r1.tools.sandbox.levels import probe

PATIENT_S = 120.0
"""For programs that end by themselves: the machines that run these tests are shared."""


def _offered() -> list[Level]:
    found = []
    for level in Level:
        if level is Level.NONE:
            continue
        try:
            found.append(probe(level).level)
        except (SandboxUnavailable, SandboxError):
            continue
    return found


OFFERED = _offered()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per level for whoever asks for ``level``."""
    if "level" not in metafunc.fixturenames:
        return
    marks = [[], *([pytest.mark.slow] for _ in OFFERED[1:])]
    levels = [
        pytest.param(level, id=str(level), marks=mark)
        for level, mark in zip(OFFERED, marks, strict=False)
    ]
    none = pytest.param(None, id="no-isolation", marks=pytest.mark.skip("none is offered here"))
    metafunc.parametrize("level", levels or [none])


@pytest.fixture
def limits(level: Level) -> SandboxParameters:
    """Limits that a hostile program reaches soon, and an honest one on a slow machine does not."""
    return SandboxParameters(
        isolation=level,
        timeout_s=PATIENT_S,
        cpu_s=20,
        memory_mb=256,
        file_mb=4,
        disk_mb=16,
        processes=16,
        output_chars=5_000,
    )

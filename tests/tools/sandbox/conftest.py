"""The levels of isolation of this machine: tests run at each, and their names say which.

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
ISOLATING = [level for level in Level if level is not Level.NONE]
OFFERED: list[Level] = []
REFUSED: dict[Level, str] = {}
"""Why a level is not tested here."""
for _level in ISOLATING:
    try:
        OFFERED.append(probe(_level).level)
    except (SandboxUnavailable, SandboxError) as error:
        REFUSED[_level] = str(error)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per level, if the test takes ``level``; with ``named_level``, levels that are not
    available here are tests, too, skipped with the reason."""
    if "named_level" in metafunc.fixturenames:
        skips = {level: pytest.mark.skip(why) for level, why in REFUSED.items()}
        named = [
            pytest.param(level, id=str(level), marks=skips.get(level, ())) for level in ISOLATING
        ]
        metafunc.parametrize("named_level", named)
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
    """Limits that a hostile program reaches soon, but not an honest one on a slow machine."""
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

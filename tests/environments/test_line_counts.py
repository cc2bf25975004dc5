"""Each benchmark is one small file; together they have fewer than 200 lines."""

from __future__ import annotations

from agent_r1.environments import ENVIRONMENTS, environment_class
from tests.support import REPOSITORY

FOLDER = REPOSITORY / "src/agent_r1/environments"
MOST = 200
BENCHMARKS = sorted(ENVIRONMENTS.keys() - {"gymnasium"})
"""All environments but the adapter for Gymnasium."""


def test_the_benchmarks_together_are_under_two_hundred_lines():
    lines = {
        name: len((FOLDER / f"{name}.py").read_text(encoding="utf-8").splitlines())
        for name in BENCHMARKS
    }
    assert sum(lines.values()) < MOST, lines


def test_every_benchmark_has_a_file_with_its_name():
    for name in BENCHMARKS:
        assert environment_class(name).__module__ == f"agent_r1.environments.{name}"

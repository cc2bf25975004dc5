"""Solutions that try to pass without solving: the tester never runs their code, so none does.

The task is to double a number. A solution that does passes through the same machinery.
"""

from __future__ import annotations

import textwrap

import pytest

from agent_r1.tools.sandbox import Level, SandboxParameters, run_tests
from tests.support.cheats import CHEATS, ENDLESS

TESTS = """
def check(candidate):
    assert candidate(2) == 4
    assert candidate(2.5) == 5.0
    assert candidate("ab") == "abab"
    assert candidate([1]) == [1, 1]
    assert helper(candidate(3)) == 0
"""
PRELUDE = "def helper(x):\n    return x - 6\n\ndef double(x):\n    '''Twice x.'''\n"
HONEST = "def double(x):\n    return x * 2\n"


def verdict_on(solution: str, parameters: SandboxParameters):
    return run_tests(
        textwrap.dedent(solution),
        TESTS,
        entry_point="double",
        prelude=PRELUDE,
        parameters=parameters,
    )


def test_a_solution_passes(level: Level, limits: SandboxParameters):
    verdict = verdict_on(HONEST, limits)
    assert (verdict.passed, verdict.reason) == (True, "passed")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in ENDLESS[1:] else [])
        for name in CHEATS
    ],
)
def test_p34_a_cheat_does_not_pass(name: str, level: Level, limits: SandboxParameters):
    short = limits.model_copy(update={"timeout_s": 2.0})
    verdict = verdict_on(CHEATS[name], short if name in ENDLESS else limits)
    assert not verdict.passed
    assert not any(part in verdict.reason for part in ("assert", "candidate", "abab"))


def test_p34_the_answers_are_not_in_the_solutions_process(level: Level, limits: SandboxParameters):
    """It gets each argument, but never the expected answer."""
    spy = """
        import gc
        def double(x):
            texts = [t for t in gc.get_objects() if isinstance(t, (list, dict, tuple))]
            return x * 2 if "".join(["'ab", "ab'"]) in repr(texts) else x
        """
    assert verdict_on(spy, limits).reason == "wrong answer"


STOP = "def double(x): raise StopIteration"
YES = textwrap.dedent(CHEATS["an object of truth"])
CARELESS_TESTS = {
    "a map": (STOP, "assert all(map(lambda case: double(case[0]) == case[1], [(1, 2), (2, 4)]))"),
    "a loop over a map": (STOP, "for y in map(double, [1, 2]):\n    assert y == 3"),
    "a sorted copy": (
        "def double(x):\n    x.clear()\n    return []",
        "x = [3, 1, 2]\nassert double(x) == sorted(x)",
    ),
    "a difference": (YES, "assert abs(double(2) - 4) < 1e-6"),
    "several properties": (
        YES,
        "y = double(2)\nassert len(y) == 2 and all(x in y for x in (3, 4))",
    ),
    "a method of the answer": (YES, "assert double('ab').startswith('abab')"),
}
"""(solution, tests): written as if a function could only return what it should, or raise an error.
In one process with the tests, each of these solutions would pass."""


@pytest.mark.parametrize("name", CARELESS_TESTS)
def test_p34_careless_tests_are_not_passed_by_a_trick(
    name: str, level: Level, limits: SandboxParameters
):
    solution, tests = CARELESS_TESTS[name]
    namespace: dict = {}
    exec(f"{solution}\n{tests}", namespace)  # the trick works in one process
    assert not run_tests(solution, tests, entry_point="double", parameters=limits).passed

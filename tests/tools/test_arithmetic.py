"""The calculator: correct within its limits, and limited."""

from __future__ import annotations

import contextlib
import time

import pytest

from agent_r1.tools.arithmetic import MAX_CHARS, ExpressionError, calculate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("3 * (4 + 5)", "27"),
        ("6 / 2", "3"),
        ("7 / 2", "3.5"),
        ("1 / 3", "0.333333333333333"),
        ("0.1 + 0.2", "0.3"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("2 ** 100", "1267650600228229401496703205376"),
        ("2 ** -1", "0.5"),
        ("(-8) ** 2", "64"),
        ("sqrt(2) * sqrt(2)", "2"),
        ("max(2, 3) - min(2, 3) + abs(-4) + round(2.567, 1)", "7.6"),
        (" 12 ", "12"),
        ("1e3", "1000"),
        # exact, where floats are not
        ("9007199254740993 * 3 / 3", "9007199254740993"),
    ],
)
def test_values(expression, value):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1 / 0", "division by zero"),
        ("5 % 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("9 ** 99999999999", "too large"),
        ("2.0 ** 99999", "too large"),
        ("1e308 * 10", "too large"),
        ("10 ** 300 * 10 ** 300", "too large"),
        ("(-8) ** 0.5", "not a real number"),
        ("sqrt(-1)", "sqrt: "),
        ("round(1, 2, 3)", "round: "),
        ("2 +", "is not an arithmetic expression"),
        ("", "is not an arithmetic expression"),
        ("1\x00", "is not an arithmetic expression"),
        ("x + 1", "'x' is not arithmetic"),
        ("'a' * 3", "is not arithmetic"),
        ("True + 1", "'True' is not arithmetic"),
        ("1 < 2", "is not arithmetic"),
        ("(1, 2)", "is not arithmetic"),
        ("__import__('os').system('true')", "is not arithmetic"),
        ("().__class__", "is not arithmetic"),
        ("sqrt(x=2)", "is not arithmetic"),
        ("(lambda: 1)()", "is not arithmetic"),
        ("[1 for _ in range(9)]", "is not arithmetic"),
        ("1" * (MAX_CHARS + 1), "longer than"),
    ],
)
def test_invalid_or_too_large_expressions_are_refused(expression, message):
    with pytest.raises(ExpressionError, match=message):
        calculate(expression)


@pytest.mark.parametrize(
    "expression", ["(" * 240 + "1" + ")" * 240, "-" * 499 + "1", "**".join(["9"] * 160), "9" * 400]
)
def test_the_most_expensive_valid_expressions_are_fast(expression):
    began = time.process_time()
    with contextlib.suppress(ExpressionError):
        assert calculate(expression)
    assert time.process_time() - began < 0.5

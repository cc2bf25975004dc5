"""A calculator: arithmetic in Python's notation, with bounded cost.

1. An expression is parsed, never executed: numbers, ``+ - * / // % **``, parentheses, and a few
   functions. Anything else (names, other calls, attributes, comparisons) is refused, and the
   message quotes it.
2. Integers stay exact. A division without remainder gives an integer: ``6 / 2`` is 3.
3. No expression takes long or fills the memory: its length, its depth and the size of every
   intermediate number are bounded. A power that is too large is refused before it is computed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

from agent_r1.tools.failures import BadArguments

MAX_CHARS = 500
"""Longest expression, in characters."""
MAX_BITS = 1024
"""Largest integer, in bits: about 300 digits, as large as a float can be."""
_MAX_DIGITS = 15
"""Significant digits of a printed result: those that a float represents exactly."""

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    function.__name__: function for function in (abs, max, min, round, math.sqrt)
}


class ExpressionError(BadArguments):
    """An expression cannot be computed; the message is for the agent."""


def calculate(expression: str) -> str:
    """The value of an expression, as the shortest decimal.

    >>> calculate("3 * (4 + 5)"), calculate("7 / 2"), calculate("0.1 + 0.2")
    ('27', '3.5', '0.3')

    Raises:
        ExpressionError: it is not arithmetic, divides by zero, or is too large.
    """
    if len(expression) > MAX_CHARS:
        raise ExpressionError(f"the expression is longer than {MAX_CHARS} characters")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        return _shown(_value(tree.body))
    except (SyntaxError, MemoryError, RecursionError):
        raise ExpressionError(f"'{expression[:60]}' is not an arithmetic expression") from None
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except OverflowError:
        raise ExpressionError("the number is too large") from None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(_apply(op, _value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _call(name, [_value(arg) for arg in args])
    raise ExpressionError(f"'{ast.unparse(node)[:60]}' is not arithmetic")


def _apply(op: ast.operator, left: float, right: float) -> float:
    if isinstance(op, ast.Pow):
        return _power(left, right)
    if isinstance(op, ast.Div) and isinstance(left, int) and isinstance(right, int):
        quotient, rest = divmod(left, right)
        return quotient if rest == 0 else left / right
    return _BINARY[type(op)](left, right)


def _power(base: float, exponent: float) -> float:
    """``base ** exponent``; an integer power that would be too large is not computed."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        if abs(base) > 1 and abs(base).bit_length() * exponent > 2 * MAX_BITS:
            raise OverflowError
        return base**exponent
    return float(base) ** exponent


def _call(name: str, values: list[float]) -> float:
    try:
        return _bounded(_FUNCTIONS[name](*values))
    except (TypeError, ValueError) as error:
        raise ExpressionError(f"{name}: {error}") from None


def _bounded(number: float) -> float:
    if isinstance(number, complex):
        raise ExpressionError("the result is not a real number")
    if isinstance(number, int):
        if number.bit_length() > MAX_BITS:
            raise OverflowError
    elif not math.isfinite(number):
        raise OverflowError
    return number


def _shown(number: float) -> str:
    if isinstance(number, int):
        return str(number)
    if number.is_integer() and abs(number) < 10**_MAX_DIGITS:
        return str(int(number))
    return f"{number:.{_MAX_DIGITS}g}"

"""The language between a solution and its judge: plain values as one line of JSON.

1. Written by the solution's side, which nobody trusts, and read by `decode`, which makes nothing
   but built-in values, checks every tag, and never evaluates or imports.
2. A subclass is written as the built-in value that it contains: whatever its ``__eq__`` says stays
   behind. An object of any other class is written as a number, an `Opaque`, which can be passed
   back as an argument and equals nothing.
3. Exact: integers of any size, floats bit for bit, NaN, lone surrogates, dictionary order.

Never pickle: reading one runs code of whoever wrote it.
"""

from __future__ import annotations

import collections
import itertools
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_CHARS = 16_000_000
"""Of one message; the judge reads no more."""
MAX_ITEMS = 100_000
"""Of an iterator, which is sent as what it yields: it may never end."""
_EXACT = 2**53


class BadValue(ValueError):
    """A message that `encode` did not write, or a value that it cannot."""


class Opaque:
    """A solution's own object, known by number. Tests cannot compare it: that would be its call."""

    def __init__(self, number: int):
        self.number = number

    def _refuse(self, *_: object) -> bool:
        raise TypeError("the solution returned an object of its own class")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse
    __hash__ = object.__hash__


def encode(value: Any, number_of: Callable[[Any], int]) -> Any:
    """``value`` as JSON can write it; ``number_of`` gives the number of any other object.

    Raises:
        BadValue: an iterator yields too much.
        RecursionError: the value is nested too deeply, or contains itself.
    """
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int.__index__(value)
        return number if abs(number) < _EXACT else ["int", hex(number)]
    if isinstance(value, float):
        return ["float", float.hex(value)]
    if isinstance(value, complex):
        return ["complex", float.hex(value.real), float.hex(value.imag)]
    if isinstance(value, bytes | bytearray):
        return [type(value).__name__, bytes(value).hex()]
    if isinstance(value, Decimal | Fraction):
        return ["Decimal" if isinstance(value, Decimal) else "Fraction", str(value)]
    if isinstance(value, range):
        return ["range", *(["int", hex(part)] for part in (value.start, value.stop, value.step))]
    if isinstance(value, dict):
        pairs = dict.items(value)
        return ["dict", *([encode(k, number_of), encode(v, number_of)] for k, v in pairs)]
    for kind in (list, tuple, set, frozenset, collections.deque):
        if isinstance(value, kind):
            return [kind.__name__, *(encode(item, number_of) for item in kind.__iter__(value))]
    if isinstance(value, Iterator):
        items = list(itertools.islice(value, MAX_ITEMS + 1))
        if len(items) > MAX_ITEMS:
            raise BadValue(f"an iterator yields more than {MAX_ITEMS} items")
        return ["iterator", *(encode(item, number_of) for item in items)]
    return ["object", number_of(value)]


def decode(value: Any, object_of: Callable[[int], Any] = Opaque) -> Any:
    """The value that was encoded; ``object_of`` gives what a number stands for.

    Raises:
        BadValue: it was not written by `encode`.
    """
    try:
        return _decode(value, object_of)
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        raise BadValue(f"not a value: {error}") from None


_MADE_OF_TEXT: dict[str, Callable[..., Any]] = {
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    "complex": lambda real, imaginary: complex(float.fromhex(real), float.fromhex(imaginary)),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "Decimal": Decimal,
    "Fraction": Fraction,
}
_MADE_OF_ITEMS: dict[str, Callable[[list], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": collections.deque,
    "iterator": iter,
    "range": lambda parts: range(*parts),
}


def _decode(value: Any, object_of: Callable[[int], Any]) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if not isinstance(value, list) or not value:
        raise BadValue(f"a value cannot be a {type(value).__name__}")
    tag, *parts = value
    if tag in _MADE_OF_TEXT:
        if not all(isinstance(part, str) for part in parts):
            raise BadValue(f"{tag} of something that is not text")
        return _MADE_OF_TEXT[tag](*parts)
    if tag in _MADE_OF_ITEMS:
        return _MADE_OF_ITEMS[tag]([_decode(part, object_of) for part in parts])
    if tag == "dict":
        return {_decode(key, object_of): _decode(item, object_of) for key, item in parts}
    if tag == "object":
        (number,) = parts
        return object_of(int(number))
    raise BadValue(f"unknown kind {tag!r}")


def write(message: dict[str, Any]) -> str:
    """A message as one line."""
    return json.dumps(message) + "\n"


def read(line: str) -> dict[str, Any]:
    """A line as a message.

    Raises:
        BadValue: it is none.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadValue(f"not a message: {error}") from None
    if not isinstance(message, dict):
        raise BadValue("not a message")
    return message

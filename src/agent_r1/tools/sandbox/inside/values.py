"""The language between a solution and its tester: plain values, written as JSON.

1. The solution's side, which is not trusted, writes with `encode`. `decode` reads: it makes only
   built-in values, checks every tag, and never evaluates or imports.
2. A subclass is written as the built-in value that it contains, without its ``__eq__``.
3. An object of a class that the task itself defines (``own``) is written as the class's name and
   the object's attributes, and rebuilt from the reader's own class: its behaviour is the task's.
4. A built-in type is written by its name. Any other object is written as a number and its truth,
   an `Opaque`, which can be passed back as an argument but not compared.
5. Exact: integers of any size, floats bit for bit, NaN, lone surrogates, dictionary order.

Not pickle: reading one runs code of its writer.
"""

from __future__ import annotations

import collections
import datetime
import enum
import itertools
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_ITEMS = 100_000
"""Most items of an iterator, which is sent as its items: it may never end."""
TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict)
} | {"NoneType": type(None)}
"""Types that are values; no other type can be named."""
_EXACT = 2**53
_COLLECTIONS: tuple[type[Any], ...] = (list, tuple, set, frozenset, collections.deque)
_MAPPINGS: tuple[type[Any], ...] = (collections.Counter, collections.OrderedDict, dict)
"""Subclasses before their base."""


class BadValue(ValueError):
    """A message that `encode` did not write, or a value that it cannot write."""


class Opaque:
    """A solution's own object, known by number. Tests cannot compare it: it would decide itself."""

    def __init__(self, number: int, truth: bool):
        self.opaque_number = number
        self.opaque_truth = truth

    def _refuse(self, other: object, /) -> bool:
        raise TypeError("the solution returned an object of its own class")

    def __bool__(self) -> bool:
        return self.opaque_truth  # sent with the object: as good as a returned bool

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = object.__hash__


def encode(
    value: Any, known_as: Callable[[Any], tuple[int, bool]], own: Mapping[str, type] | None = None
) -> Any:
    """``value`` in a form that JSON can write.

    Args:
        known_as: gives number and truth of an object that has no other form.
        own: name → class, for the classes that the task defines.

    Raises:
        BadValue: an iterator yields too much.
        RecursionError: the value is nested too deeply, or contains itself.
    """
    writer = _Writer(known_as, own or {})
    written = writer.write(value)
    states = writer.states()
    return ["with", states, written] if states else written


class _Writer:
    """Objects of own classes go into a table: they may be shared, or contain themselves."""

    def __init__(self, known_as: Callable[[Any], tuple[int, bool]], own: Mapping[str, type]):
        self._known_as = known_as
        self._names = {kind: name for name, kind in own.items()}
        self._places: dict[int, int] = {}
        self._objects: list[Any] = []

    def states(self) -> list[Any]:
        """[class's name, attributes] of all objects found; writing them may find more."""
        written: list[Any] = []
        while len(written) < len(self._objects):
            value = self._objects[len(written)]
            written.append([self._names[type(value)], self.write(attributes(value))])
        return written

    def write(self, value: Any) -> Any:
        name = self._names.get(type(value))
        if name is not None:
            form = form_of(type(value))
            if form == "member":
                return ["member", name, value.name]
            if form == "record":
                return ["record", name, *map(self.write, tuple.__iter__(value))]
            if form == "instance":
                return ["instance", self._place(value)]
            return ["object", *self._known_as(value)]
        return self._plain(value)

    def _place(self, value: Any) -> int:
        if id(value) not in self._places:
            self._places[id(value)] = len(self._objects)
            self._objects.append(value)
        return self._places[id(value)]

    def _plain(self, value: Any) -> Any:
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
        if isinstance(value, datetime.date | datetime.time):
            kinds = (datetime.datetime, datetime.date, datetime.time)
            (name, *_) = (kind.__name__ for kind in kinds if isinstance(value, kind))
            return [name, value.isoformat()]
        if isinstance(value, datetime.timedelta):
            return ["timedelta", value.days, value.seconds, value.microseconds]
        if isinstance(value, range):
            parts = (value.start, value.stop, value.step)
            return ["range", *(["int", hex(part)] for part in parts)]
        return self._container(value)

    def _container(self, value: Any) -> Any:
        for mapping in _MAPPINGS:
            if isinstance(value, mapping):
                pairs = dict.items(value)
                return [mapping.__name__, *([self.write(k), self.write(v)] for k, v in pairs)]
        for kind in _COLLECTIONS:
            if isinstance(value, kind):
                return [kind.__name__, *map(self.write, kind.__iter__(value))]
        for view, name in ((KeysView, "keys"), (ItemsView, "items"), (ValuesView, "values")):
            if isinstance(value, view):
                return [name, *map(self.write, value)]
        if isinstance(value, Iterator):
            items = list(itertools.islice(value, MAX_ITEMS + 1))
            if len(items) > MAX_ITEMS:
                raise BadValue(f"an iterator yields more than {MAX_ITEMS} items")
            return ["iterator", *map(self.write, items)]
        if isinstance(value, type) and TYPES.get(value.__name__) is value:
            return ["type", value.__name__]
        return ["object", *self._known_as(value)]


def form_of(kind: type) -> str | None:
    """How objects of an own class are written; None: they cannot be rebuilt."""
    if issubclass(kind, enum.Enum):
        return "member"
    if issubclass(kind, tuple):
        return "record"
    # Without a built-in base, an object holds nothing but attributes.
    return "instance" if kind.__new__ is object.__new__ and not _is_built_in(kind) else None


def _is_built_in(kind: type) -> bool:
    return any(base.__module__ == "builtins" and base is not object for base in kind.__mro__)


def attributes(value: Any) -> dict[str, Any]:
    """An object's attributes, from its ``__dict__`` and its slots."""
    state = object.__getstate__(value)
    held, slots = state if isinstance(state, tuple) else (state, {})
    return {**(held or {}), **slots}


def decode(
    value: Any,
    object_of: Callable[[int, bool], Any] = Opaque,
    own: Mapping[str, type] | None = None,
) -> Any:
    """The value that was encoded.

    Args:
        object_of: gives the object for a number and its truth.
        own: as for `encode`, with the reader's classes.

    Raises:
        BadValue: it was not written by `encode`.
    """
    try:
        return _Reader(object_of, own or {}).read(value)
    except (
        TypeError, ValueError, ArithmeticError, LookupError, RecursionError, AttributeError
    ) as error:  # fmt: skip
        raise BadValue(f"not a value: {error}") from None


_MADE_OF_TEXT: dict[str, Callable[..., Any]] = {
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    "complex": lambda real, imaginary: complex(float.fromhex(real), float.fromhex(imaginary)),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "Decimal": Decimal,
    "Fraction": Fraction,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "time": datetime.time.fromisoformat,
}
_MADE_OF_ITEMS: dict[str, Callable[[list], Any]] = {
    **{kind.__name__: kind for kind in _COLLECTIONS},
    "iterator": iter,
    "keys": lambda items: dict.fromkeys(items).keys(),
    "values": lambda items: dict(enumerate(items)).values(),
    "items": lambda pairs: dict(pairs).items(),
    "range": lambda parts: range(*parts),
    "timedelta": lambda parts: datetime.timedelta(*parts),
}
_MADE_OF_PAIRS = {kind.__name__: kind for kind in _MAPPINGS}


class _Reader:
    def __init__(self, object_of: Callable[[int, bool], Any], own: Mapping[str, type]):
        self._object_of = object_of
        self._own = own
        self._instances: list[Any] = []

    def read(self, value: Any) -> Any:
        if not (isinstance(value, list) and value[:1] == ["with"]):
            return self._read(value)
        _, states, written = value
        self._instances = [object.__new__(self._class(name, "instance")) for name, _ in states]
        for instance, (_, held) in zip(self._instances, states, strict=True):
            for name, item in dict.items(self._read(held)):
                if callable(getattr(type(instance), name, None)):
                    raise BadValue(f"{name} is a method of the class")
                object.__setattr__(instance, name, item)
        return self._read(written)

    def _class(self, name: str, form: str) -> type[Any]:
        kind = self._own[name]
        if form_of(kind) != form:
            raise BadValue(f"{name} is no {form}")
        return kind

    def _read(self, value: Any) -> Any:
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
            return _MADE_OF_ITEMS[tag]([self._read(part) for part in parts])
        if tag in _MADE_OF_PAIRS:
            pairs = {self._read(key): self._read(item) for key, item in parts}
            return _MADE_OF_PAIRS[tag](pairs)
        return self._read_object(tag, parts)

    def _read_object(self, tag: Any, parts: list[Any]) -> Any:
        if tag == "object":
            number, truth = parts
            if not isinstance(truth, bool):
                raise BadValue("an object is true or false")
            return self._object_of(int(number), truth)
        if tag == "type":
            (name,) = parts
            return TYPES[name]
        if tag == "instance":
            (place,) = parts
            return self._instances[place]
        if tag == "member":
            name, member = parts
            return self._class(name, "member")[member]
        if tag == "record":
            name, *items = parts
            return tuple.__new__(self._class(name, "record"), [self._read(item) for item in items])
        raise BadValue(f"unknown kind {tag!r}")

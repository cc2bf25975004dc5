"""The language between solution and tester.

1. Plain values come back equal and of the same type; floats bit for bit.
2. Of a subclass only the built-in value in it is written.
3. What `encode` did not write is refused; an object is a number that equals nothing.
"""

from __future__ import annotations

import collections
import datetime
import enum
import json
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.tools.sandbox.inside.values import MAX_ITEMS, BadValue, Opaque, decode, encode

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False)
    | st.fractions()
    | st.decimals(allow_nan=False)
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.lists(inner).map(tuple), max_leaves=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.sets(HASHABLE)
        | st.frozensets(HASHABLE)
        | st.dictionaries(HASHABLE, inner)
        | st.lists(inner).map(collections.deque)
    ),
    max_leaves=10,
)


def there_and_back(value: Any) -> Any:
    return decode(json.loads(json.dumps(encode(value, lambda _: (7, True)))))


def types_of(value: Any) -> Any:
    if isinstance(value, dict):
        return dict, [(types_of(k), types_of(v)) for k, v in value.items()]
    if isinstance(value, list | tuple | collections.deque):
        return type(value), [types_of(item) for item in value]
    return type(value)


@settings(max_examples=40)
@given(VALUES)
def test_values_come_back(value: Any):
    returned = there_and_back(value)
    assert returned == value
    assert types_of(returned) == types_of(value)


def test_floats_are_exact():
    assert math.isnan(there_and_back(float("nan")))
    assert math.copysign(1, there_and_back(-0.0)) == -1
    assert there_and_back(0.1 + 0.2) == 0.30000000000000004
    assert there_and_back(math.inf) == math.inf


def test_other_built_in_values():
    assert there_and_back(range(2, 10, 3)) == range(2, 10, 3)
    assert list(there_and_back(iter([1, 2]))) == [1, 2]
    assert there_and_back(10**6000) == 10**6000
    assert there_and_back("\ud800") == "\ud800"
    assert there_and_back({int: [None], "none": type(None)}) == {int: [None], "none": type(None)}
    assert isinstance(there_and_back(object), Opaque)
    assert there_and_back(re.match("a", "a")).__bool__() is True
    assert there_and_back((Decimal("1.50"), Fraction(1, 3))) == (Decimal("1.5"), Fraction(1, 3))


def test_views_are_views():
    letters = {"b": 1, "a": 1}
    keys, items, held = map(there_and_back, (letters.keys(), letters.items(), letters.values()))
    assert (keys, items, list(held)) == (letters.keys(), letters.items(), [1, 1])
    assert keys & {"a"} == {"a"}
    assert len(held) == 2


def test_dictionaries_that_compare_in_their_own_way():
    ordered = there_and_back(collections.OrderedDict(a=1, b=2))
    assert ordered != collections.OrderedDict(b=2, a=1)
    assert there_and_back(collections.Counter("aab")).most_common(1) == [("a", 2)]


@pytest.mark.parametrize(
    "value",
    [
        datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, 30, 0, 5, datetime.UTC),
        datetime.time(23, 59),
        datetime.timedelta(days=-1, microseconds=1),
    ],
    ids=str,
)
def test_dates(value: Any):
    returned = there_and_back(value)
    assert (returned, type(returned)) == (value, type(value))


class Pair:
    """A task's own class."""

    def __init__(self, a: Any, b: Any):
        self.a, self.b = a, b

    def total(self) -> Any:
        """A method, which cannot be replaced."""
        return self.a + self.b


class Slots:
    """Another, without a dictionary."""

    __slots__ = ("x",)


class Colour(enum.Enum):
    """Another, of members."""

    RED = 1


Point = collections.namedtuple("Point", "x y")
OWN = {kind.__name__: kind for kind in (Pair, Slots, Colour, Point)}


def own_there_and_back(value: Any) -> Any:
    return decode(json.loads(json.dumps(encode(value, lambda _: (7, True), OWN))), own=OWN)


def test_objects_of_own_classes_are_rebuilt():
    slots = Slots()
    slots.x = Colour.RED
    pair, point, held, colour = own_there_and_back([Pair(1, [2]), Point(1, 2), slots, Colour.RED])
    assert (type(pair), pair.a, pair.b) == (Pair, 1, [2])
    assert (type(point), point) == (Point, (1, 2))
    assert held.x is colour is Colour.RED


def test_objects_may_be_shared_and_contain_themselves():
    pair = Pair(1, None)
    pair.b = {"me": pair}
    first, second = own_there_and_back([pair, pair])
    assert first is second is first.b["me"]
    chain: Any = None
    for number in range(5_000):  # far deeper than nested lists may be
        chain = Pair(number, chain)
    assert own_there_and_back(chain).b.b.a == 4_997


def test_a_method_of_an_own_class_cannot_be_replaced():
    pair = Pair(1, 2)
    pair.total = 5
    with pytest.raises(BadValue, match="total is a method"):
        own_there_and_back(pair)


def test_an_own_class_is_read_only_as_what_it_is():
    for forged in (["record", "Pair", 1], ["member", "Point", "x"], ["record", "Colour", 1]):
        with pytest.raises(BadValue, match="is no"):
            decode(forged, own=OWN)
    with pytest.raises(BadValue, match="is no instance"):
        decode(["with", [["Point", ["dict"]]], 1], own=OWN)


def test_a_subclass_is_written_as_what_it_contains():
    class Same(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    class Everything(list):
        def __iter__(self):
            return iter([4])

        def __eq__(self, other: object) -> bool:
            return True

    assert there_and_back(Same(1)) != 2
    assert type(there_and_back(Same(1))) is int
    assert there_and_back(Everything([1])) == [1]
    assert there_and_back(collections.Counter("aab")) == {"a": 2, "b": 1}
    assert type(there_and_back(collections.defaultdict(int, a=1))) is dict


def test_an_object_can_be_passed_on_and_not_compared():
    returned = there_and_back(object())
    assert isinstance(returned, Opaque)
    assert encode(returned, lambda value: (value.opaque_number, value.opaque_truth)) == [
        "object",
        7,
        True,
    ]
    for compare in (
        lambda: returned == 1,
        lambda: returned == returned,
        lambda: returned != 1,
        lambda: [returned] == [1],
        lambda: returned > 1,
    ):
        with pytest.raises(TypeError, match="its own class"):
            compare()


def test_iterators_end():
    with pytest.raises(BadValue, match=f"more than {MAX_ITEMS}"):
        encode(iter(int, 1), lambda _: (0, True))


@pytest.mark.parametrize(
    "forged",
    [
        1.5,
        {},
        {"a": 1},
        [],
        ["__import__", "os"],
        ["int"],
        ["int", 5],
        ["int", "0x10", "0x10"],
        ["float", ["float", "0x1p+0"]],
        ["float", "1_0__"],
        ["set", ["list"]],
        ["dict", [1, 2, 3]],
        ["dict", 5],
        ["dict", [["list"], 1]],
        ["object"],
        ["object", "x"],
        ["object", 1],
        ["object", 1, 2],
        ["object", 1, True, 2],
        ["instance", 0],
        ["instance", -1],
        ["record", "Pair", 1],
        ["member", "Pair", "a"],
        ["with", [], ["instance", 0]],
        ["with", [["Pair", ["dict"]]], 1],
        ["with", 5, 1],
        ["list", ["with", [], 1]],
        ["type", "object"],
        ["type", ["type", "int"]],
        ["date", "x"],
        ["timedelta", "x"],
        ["timedelta", 10**12, 0, 0],
        ["items", 5],
        ["keys", ["list"]],
        ["Counter", 5],
        ["range", 1, 2, 0],
        ["complex", "0x1p+0"],
        [["list"], 1],
        ["bytes", "zz"],
        ["Fraction", "1/0"],
        ["Decimal", "x"],
    ],
    ids=str,
)
def test_what_was_not_encoded_is_refused(forged: Any):
    with pytest.raises(BadValue):
        decode(forged)


def test_deep_nesting_is_refused_and_crashes_nothing():
    value: Any = 1
    for _ in range(100_000):
        value = ["list", value]
    with pytest.raises(BadValue):
        decode(value)

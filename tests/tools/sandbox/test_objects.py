"""Objects as arguments and answers: whose class decides what.

1. Classes that a solution must define (``classes``; MBPP's tests make objects of them): the objects
   stay with the solution, their attributes and methods are its answers.
2. Classes that the task defines (``prelude``): objects cross by attribute, the task's class judges.
3. Neither makes an answer out of nothing: an object equals no plain value.
"""

from __future__ import annotations

import pytest

from agent_r1.tools.sandbox import Level, SandboxParameters, TestsUnusable, run_tests

TREE = """
class Node:
    def __init__(self, value):
        self.value, self.left, self.right = value, None, None
def height(node):
    return 0 if node is None else 1 + max(height(node.left), height(node.right))
"""
STACK = """
class Stack:
    def __init__(self): self.items = []
    def push(self, item): self.items.append(item)
    def pop(self): return self.items.pop()
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, place): return self.items[place]
    def __str__(self): return f"Stack{self.items}"
def fill(number):
    stack = Stack()
    for item in range(number): stack.push(item)
    return stack
"""
POINT = """
import dataclasses
@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int
def flip(point): return Point(point.y, point.x)
"""
SOLUTIONS_OWN = {
    "set-up code that builds a tree": (
        TREE,
        "Node",
        ("1 + max", "2 + max"),
        """
root = Node(1)
root.left = Node(2)
root.left.right = Node(3)
assert height(root) == 3
assert root.left.value == 2 and root.right is None and root.left is not None
assert root.left == root.left and root.left != None
""",
    ),
    "a class under test": (
        STACK,
        "Stack",
        ("items.pop()", "items.pop(0)"),
        """
stack = Stack()
assert not stack
stack.push(5)
stack.push("a")
assert stack and len(stack) == 2 and list(stack) == [5, "a"] and stack[1] == "a"
assert stack.pop() == "a" and stack.items == [5] and str(stack) == "Stack[5]"
assert len(fill(number=4)) == 4
try:
    Stack().pop()
except IndexError:
    pass
else:
    assert False
""",
    ),
    "objects that are compared with each other": (
        POINT,
        "Point",
        ("order=True", "order=False"),
        """
assert flip(Point(1, 2)) == Point(2, 1)
assert flip(Point(1, 2)) != Point(1, 2)
assert Point(1, 2) < Point(1, 3) <= Point(1, 3)
assert max([Point(1, 2), Point(3, 1), Point(2, 9)]).x == 3
assert repr(Point(1, 2)) == "Point(x=1, y=2)"
""",
    ),
}


@pytest.mark.parametrize("name", SOLUTIONS_OWN)
def test_classes_that_a_solution_must_define(name: str, level: Level, limits: SandboxParameters):
    solution, wanted, wrong, tests = SOLUTIONS_OWN[name]

    def passed(text: str) -> bool:
        return run_tests(text, tests, entry_point=None, classes=[wanted], parameters=limits).passed

    assert passed(solution)
    assert not passed(solution.replace(*wrong))
    assert not passed(solution.replace(f"class {wanted}", "class Other"))


EVIL = """
class Point:
    def __init__(self, *numbers): pass
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __contains__ = __lt__
    def __hash__(self): return hash((2, 1))
    def __sub__(self, other): return 0
    __rsub__ = __abs__ = __sub__
def flip(point): return Point()
"""


@pytest.mark.parametrize(
    "tests",
    [
        "assert flip(Point(1, 2)) == 5",
        "assert 5 == flip(Point(1, 2))",
        "assert [flip(Point(1, 2))] == [(2, 1)]",
        "assert flip(Point(1, 2)) in [(2, 1)]",
        "assert flip(Point(1, 2)) in {(2, 1)}",
        "assert flip(Point(1, 2)) > 5",
        "assert abs(flip(Point(1, 2)) - 5) < 1e-6",
        "assert 5 in flip(Point(1, 2))",
        "assert isinstance(flip(Point(1, 2)), int)",
        "assert flip(Point(1, 2)).x == 2",
    ],
)
def test_p34_an_object_is_not_a_plain_value(tests: str, level: Level, limits: SandboxParameters):
    verdict = run_tests(EVIL, tests, entry_point=None, classes=["Point"], parameters=limits)
    assert not verdict.passed


PAIR = """
from collections import namedtuple
from enum import Enum
class Pair:
    def __init__(self, a, b): self.a, self.b, self.me = a, b, self
    def __eq__(self, other): return (self.a, self.b) == (other.a, other.b)
    def total(self): return self.a + self.b
Point = namedtuple("Point", "x y")
class Turn(Enum):
    LEFT, RIGHT = 1, 2
class Negative(Exception): pass
"""
SWAP = """
def swap(it):
    if isinstance(it, Pair): return Pair(it.b, it.a)
    if isinstance(it, Point): return Point(it.y, it.x)
    if isinstance(it, Turn): return Turn.LEFT if it is Turn.RIGHT else Turn.RIGHT
    raise Negative("no")
"""
SWAPPED = """
assert swap(Pair(1, 2)) == Pair(2, 1)
assert swap(Pair(1, 2)).total() == 3
assert swap(Point(1, 2)) == Point(2, 1) and swap(Point(1, 2)).x == 2
assert swap(Turn.LEFT) is Turn.RIGHT
try:
    swap(5)
except Negative as error:
    assert str(error) == "no"
else:
    assert False
"""


def swapped(solution: str, limits: SandboxParameters) -> bool:
    return run_tests(solution, SWAPPED, entry_point=None, prelude=PAIR, parameters=limits).passed


def test_classes_that_the_task_defines(level: Level, limits: SandboxParameters):
    assert swapped(PAIR + SWAP, limits)
    assert not swapped(PAIR + SWAP.replace("it.b, it.a", "it.a, it.b"), limits)
    assert not swapped(PAIR + SWAP.replace("Negative", "KeyError"), limits)


@pytest.mark.parametrize(
    "solution",
    [
        "class Pair:\n    def __init__(self, *_): self.a = self.b = 0\n"
        "    def __eq__(self, other): return True\n    def total(self): return 3",
        "Pair = lambda *_: 5",
        "def swap(it):\n    pair = Pair(it.b, it.a)\n    pair.total = 3\n    return pair",
        "def swap(it):\n    pair = Pair(it.b, it.a)\n    vars(pair)['__class__'] = 3\n"
        "    return pair",
        "class Same(Pair):\n    def __eq__(self, other): return True\n"
        "def swap(it): return Same(0, 3)",
    ],
)
def test_p34_a_solution_cannot_change_the_tasks_class(
    solution: str, level: Level, limits: SandboxParameters
):
    assert not swapped(PAIR + SWAP + solution, limits)


def test_lists_of_links_may_be_long(level: Level, limits: SandboxParameters):
    link = "class Link:\n    def __init__(self, value, next): self.value, self.next = value, next\n"
    solution = """
def length(link):
    number = 0
    while link: number, link = number + 1, link.next
    return number
def extend(link, value):
    while link.next: link = link.next
    link.next = Link(value, None)
"""
    tests = """
chain = None
for number in range(3_000):
    chain = Link(number, chain)
assert length(chain) == 3_000
short = Link(1, None)
extend(short, 2)
extend(short, 3)
assert short.next.next.value == 3
"""
    whole = link + solution
    assert run_tests(whole, tests, entry_point=None, prelude=link, parameters=limits).passed


def test_arguments_that_cannot_be_sent_are_not_a_failure(level: Level, limits: SandboxParameters):
    """A reward of 0 would punish the solution for it."""
    own = "class Money(float):\n    pass\n"
    with pytest.raises(TestsUnusable, match="pass a Money, which cannot be sent"):
        run_tests(
            own + "def f(x): return x",
            "assert f(Money(1)) == 1",
            entry_point=None,
            prelude=own,
            parameters=limits,
        )


@pytest.mark.parametrize(
    ("solution", "tests"),
    [
        ("def f(x): x.sort()", "x = [3, 1, 2]\nassert f(x) is None\nassert x == [1, 2, 3]"),
        ("def f(x): x[0][0] = 9", "x = [[1], [2]]\nf(x)\nassert x == [[9], [2]]"),
        ("def f(x): del x['a']", "x = {'a': 1, 'b': 2}\nf(x)\nassert x == {'b': 2}"),
        ("def f(x): x.add(1)", "x = set()\nf(x)\nassert x == {1}"),
        (
            "def f(x): x.rotate(1)",
            "import collections\nx = collections.deque([1, 2])\nf(x)\n"
            "assert x == collections.deque([2, 1])",
        ),
        ("def f(x): x[0] = 65", "x = bytearray(b'xb')\nf(x)\nassert x == b'Ab'"),
    ],
)
def test_changes_in_place(solution: str, tests: str, level: Level, limits: SandboxParameters):
    assert run_tests(solution, tests, entry_point=None, parameters=limits).passed
    nothing = "def f(x): pass"
    assert not run_tests(nothing, tests, entry_point=None, parameters=limits).passed

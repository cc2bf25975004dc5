"""Word problems in school arithmetic, generated from templates: the default source of ``math``.

1. A **family** is a kind of problem: its wordings, and the expressions that solve it. Families with
   one operation are trained on. Families with two are the split ``ood``.
2. People and things are divided into partitions: held-out and validation problems share no person
   and no thing with training problems. ``in_domain`` problems are new problems about the training
   ones.
3. A problem depends on its split and number alone. A problem that occurs already is drawn again, so
   splits do not overlap.
4. Each task has a script: compute the expression and answer with the result. Its mistakes are those
   of pupils: a wrong operation, a misread number, or an answer without a computation.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from agent_r1.tasks.drawing import draw_tasks, partitions
from agent_r1.tasks.script import answer, call
from agent_r1.tasks.source import NUMBER_ANSWERS, Source, SourceInputs, Tables
from agent_r1.tools.arithmetic import calculate

PEOPLE = (
    "Ada", "Ben", "Carla", "Dina", "Emil", "Fatima", "George", "Hana", "Ivan", "Julia", "Kofi",
    "Lena", "Mateo", "Nora", "Omar", "Priya", "Quentin", "Rosa", "Samir", "Tara", "Umar", "Vera",
    "Wen", "Yusuf", "Zoe",
)  # fmt: skip
THINGS = (
    "apples", "bags", "balls", "books", "boxes", "buttons", "cakes", "candles", "cards", "chairs",
    "coins", "cups", "eggs", "flowers", "keys", "lamps", "letters", "marbles", "nuts", "pens",
    "plates", "rings", "shells", "stamps", "tickets",
)  # fmt: skip
_PARTS = {"train": 0.6, "validation": 0.2, "held_out": 0.2}
"""Partition → its share of people and things."""
_LARGEST = 99
"""Largest number in a problem."""


@dataclass(frozen=True, slots=True)
class ProblemFamily:
    """Problems of one kind. ``{a}``, ``{b}`` and ``{c}`` are the numbers."""

    name: str
    expressions: tuple[str, ...]
    """Expressions to compute, in order. ``{r}`` is the previous result."""
    texts: tuple[str, ...]
    largest: tuple[int, ...]
    """Upper bounds of the numbers."""

    @property
    def trained(self) -> bool:
        """False for families of the split ``ood``."""
        return len(self.expressions) == 1


FAMILIES = (
    ProblemFamily(
        "gain",
        ("{a} + {b}",),
        (
            "{who} has {a} {what} and gets {b} more. How many {what} does {who} have?",
            "{who} finds {a} {what}, then {b} others. How many {what} are there?",
        ),
        (_LARGEST, _LARGEST),
    ),
    ProblemFamily(
        "loss",
        ("{a} - {b}",),
        (
            "{who} has {a} {what} and gives {b} away. How many {what} are left?",
            "Of {a} {what}, {who} loses {b}. How many {what} does {who} still have?",
        ),
        (_LARGEST, _LARGEST),
    ),
    ProblemFamily(
        "groups",
        ("{a} * {b}",),
        (
            "{who} fills {a} rows with {b} {what} each. How many {what} are there?",
            "{who} buys {b} {what} on each of {a} days. How many {what} does {who} buy?",
        ),
        (_LARGEST, 12),
    ),
    ProblemFamily(
        "share",
        ("{a} / {b}",),
        (
            "{who} shares {a} {what} among {b} friends. How many {what} does each friend get?",
            "{who} puts {a} {what} into {b} equal rows. How many {what} are in a row?",
        ),
        (_LARGEST, 12),
    ),
    ProblemFamily(
        "gain_and_loss",
        ("{a} + {b}", "{r} - {c}"),
        ("{who} has {a} {what}, gets {b} more and gives {c} away. How many {what} are left?",),
        (_LARGEST, _LARGEST, 9),
    ),
    ProblemFamily(
        "groups_and_gain",
        ("{a} * {b}", "{r} + {c}"),
        ("{who} fills {a} rows with {b} {what} and has {c} left over. How many are there in all?",),
        (_LARGEST, 12, 9),
    ),
)


def make_problems(sizes: dict[str, int], seed: int, environment: str = "math") -> Tables:
    """The table ``tasks``, and no documents.

    Args:
        sizes: split → problems.
        seed: decides the problems and the partitions.
        environment: the environment that plays them.

    Raises:
        ParameterError: a size exceeds the number of different problems.
    """
    people = partitions(PEOPLE, _PARTS, seed, "word_problems")
    things = partitions(THINGS, _PARTS, seed, "word_problems")

    def draw_problem(split: str, number: int, draw: random.Random) -> dict[str, Any]:
        part = split if split in _PARTS else "train"
        families = [family for family in FAMILIES if family.trained == (split != "ood")]
        family = families[number % len(families)]
        return _problem(family, draw, draw.choice(people[part]), draw.choice(things[part]))

    return draw_tasks("word_problems", sizes, seed, environment, draw_problem)


def _problem(family: ProblemFamily, draw: random.Random, who: str, what: str) -> dict[str, Any]:
    numbers = _numbers(family, draw)
    text = draw.choice(family.texts).format(who=who, what=what, **numbers)
    script, result = _script(family.expressions, numbers)
    return {
        "family": family.name,
        "prompt": text,
        "answers": [result],
        "hops": len(family.expressions),
        "payload": {"script": script, "mistakes": _mistakes(family, numbers, result, draw)},
    }


def _numbers(family: ProblemFamily, draw: random.Random) -> dict[str, int]:
    numbers = dict(zip("abc", (draw.randint(2, most) for most in family.largest), strict=False))
    a, b = numbers["a"], numbers["b"]
    if family.name == "loss":
        numbers["a"], numbers["b"] = max(a, b) + 1, min(a, b)
    if family.name == "share":
        numbers["a"] = b * max(2, a // b)  # nothing is left over
    return numbers


def _script(
    expressions: tuple[str, ...], numbers: dict[str, int]
) -> tuple[list[dict[str, Any]], str]:
    """The turns that compute the expressions, and the result."""
    turns, result = [], ""
    for template in expressions:
        expression = template.format(r=result, **numbers)
        result = calculate(expression)
        turns.append(call("calculate", expression=expression))
    return [*turns, answer(result)], result


def _mistakes(
    family: ProblemFamily, numbers: dict[str, int], result: str, draw: random.Random
) -> list[list[dict[str, Any]]]:
    """Scripts whose answer is not ``result``."""
    others = [sign for sign in "+-*" if f" {sign} " not in family.expressions[0]]
    wrong_sign = f"{{a}} {draw.choice(others)} {{b}}"
    misread = numbers | {"b": numbers["b"] + draw.choice((-1, 1, 10))}
    scripts = [
        _script((wrong_sign, *family.expressions[1:]), numbers),
        _script(family.expressions, misread),
        ([answer(str(numbers["a"]))], str(numbers["a"])),
    ]
    return [turns for turns, said in scripts if said != result]


def _load(inputs: SourceInputs) -> Tables:
    return make_problems(
        inputs.tasks.sizes.model_dump(), inputs.tasks.split_seed, inputs.environment
    )


SOURCE = Source("math", _load, metrics=NUMBER_ANSWERS)

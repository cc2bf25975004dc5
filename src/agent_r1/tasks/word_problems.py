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

import json
import random
from dataclasses import dataclass
from typing import Any

from agent_r1 import tables
from agent_r1.parameters import ParameterError
from agent_r1.seeding import derive_seed
from agent_r1.tasks.script import answer, call
from agent_r1.tasks.source import NUMBER_ANSWERS, Source, SourceInputs, Tables
from agent_r1.tasks.splits import in_hash_order
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
_DRAWS = 200
"""Draws until the problem is a new one."""


@dataclass(frozen=True, slots=True)
class Family:
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
    Family(
        "gain",
        ("{a} + {b}",),
        (
            "{who} has {a} {what} and gets {b} more. How many {what} does {who} have?",
            "{who} finds {a} {what}, then {b} others. How many {what} are there?",
        ),
        (_LARGEST, _LARGEST),
    ),
    Family(
        "loss",
        ("{a} - {b}",),
        (
            "{who} has {a} {what} and gives {b} away. How many {what} are left?",
            "Of {a} {what}, {who} loses {b}. How many {what} does {who} still have?",
        ),
        (_LARGEST, _LARGEST),
    ),
    Family(
        "groups",
        ("{a} * {b}",),
        (
            "{who} fills {a} rows with {b} {what} each. How many {what} are there?",
            "{who} buys {b} {what} on each of {a} days. How many {what} does {who} buy?",
        ),
        (_LARGEST, 12),
    ),
    Family(
        "share",
        ("{a} / {b}",),
        (
            "{who} shares {a} {what} among {b} friends. How many {what} does each friend get?",
            "{who} puts {a} {what} into {b} equal rows. How many {what} are in a row?",
        ),
        (_LARGEST, 12),
    ),
    Family(
        "gain_and_loss",
        ("{a} + {b}", "{r} - {c}"),
        ("{who} has {a} {what}, gets {b} more and gives {c} away. How many {what} are left?",),
        (_LARGEST, _LARGEST, 9),
    ),
    Family(
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
    people, things = _partitions(PEOPLE, seed), _partitions(THINGS, seed)
    rows: list[dict[str, Any]] = []
    texts: set[str] = set()
    for split, size in sizes.items():
        part = split if split in _PARTS else "train"
        families = [family for family in FAMILIES if family.trained == (split != "ood")]
        for number in range(size):
            draw = random.Random(derive_seed(seed, "word_problems", split, number))
            family = families[number % len(families)]
            for _ in range(_DRAWS):
                row = _problem(family, draw, draw.choice(people[part]), draw.choice(things[part]))
                if row["prompt"] not in texts:
                    break
            else:
                raise ParameterError(
                    f"tasks.sizes.{split} is {size}, but only {number} different problems exist"
                )
            texts.add(row["prompt"])
            name = f"word_problems:{split}:{number}"
            rows.append({"task_id": name, "environment": environment, "split": split, **row})
    return tables.from_rows(rows, "tasks"), tables.empty("documents")


def _partitions(names: tuple[str, ...], seed: int) -> dict[str, list[str]]:
    order, begin, parts = in_hash_order(names, seed, "word_problems"), 0, {}
    for part, share in _PARTS.items():
        end = begin + round(share * len(names))
        parts[part] = order[begin:end]
        begin = end
    return parts


def _problem(family: Family, draw: random.Random, who: str, what: str) -> dict[str, Any]:
    numbers = _numbers(family, draw)
    text = draw.choice(family.texts).format(who=who, what=what, **numbers)
    script, result = _script(family.expressions, numbers)
    payload = {"script": script, "mistakes": _mistakes(family, numbers, result, draw)}
    return {
        "family": family.name,
        "prompt": text,
        "answers": [result],
        "hops": len(family.expressions),
        "payload": json.dumps(payload),
    }


def _numbers(family: Family, draw: random.Random) -> dict[str, int]:
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
    family: Family, numbers: dict[str, int], result: str, draw: random.Random
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

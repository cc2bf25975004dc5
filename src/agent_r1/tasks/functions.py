"""Small functions to write, generated from templates: the default source of ``code``.

1. Each task names a function, its argument and what it returns. Hidden tests call it with numbers.
2. As in `agent_r1.tasks.word_problems`, a task depends on its split and number alone, and no task
   occurs twice. Function names are divided into partitions: held-out tasks use names that no
   training task uses.
3. Functions with two operations are the split ``ood``.
4. The script submits the correct function. Its mistakes are a wrong operation, a wrong number, and
   an unfinished line.
"""

from __future__ import annotations

import random
from typing import Any

from agent_r1.tasks.drawing import draw_tasks, partitions
from agent_r1.tasks.script import answer
from agent_r1.tasks.source import SCORED_BY_ENVIRONMENT, Source, SourceInputs, Tables
from agent_r1.tools.arithmetic import calculate

NAMES = (
    "area", "balance", "change", "count", "depth", "gain", "grow", "height", "income", "length",
    "level", "loss", "mass", "move", "offset", "price", "rank", "rate", "scale", "score", "shift",
    "size", "speed", "step", "total", "value", "volume", "weight", "width", "yield_of",
)  # fmt: skip
FAMILIES = {
    "plus": "x + {k}",
    "minus": "x - {k}",
    "times": "x * {k}",
    "times_plus": "x * {k} + {m}",
    "times_minus": "x * {k} - {m}",
}
"""Family → the expression that the function returns."""
_OOD = ("times_plus", "times_minus")
_WORDINGS = (
    "Write a function {name}(x) that returns {result}.",
    "Define {name}(x). It returns {result}.",
)
_PARTS = {"train": 0.6, "validation": 0.2, "held_out": 0.2}
"""Partition → its share of the names."""
_TESTED = (0, 1, -3, 12, 205)
"""Arguments that the hidden tests call the function with."""


def make_functions(sizes: dict[str, int], seed: int, environment: str = "code") -> Tables:
    """The table ``tasks``, and no documents.

    Args:
        sizes: split → tasks.
        seed: decides the tasks and the partitions.
        environment: the environment that plays them.

    Raises:
        ParameterError: a size exceeds the number of different tasks.
    """
    names = partitions(NAMES, _PARTS, seed, "functions")

    def draw_function(split: str, number: int, draw: random.Random) -> dict[str, Any]:
        families = [name for name in FAMILIES if (name in _OOD) == (split == "ood")]
        family = families[number % len(families)]
        return _function(family, draw.choice(names.get(split, names["train"])), draw)

    return draw_tasks("functions", sizes, seed, environment, draw_function)


def _function(family: str, name: str, draw: random.Random) -> dict[str, Any]:
    numbers = {"k": draw.randint(2, 99), "m": draw.randint(2, 99)}
    result = FAMILIES[family].format(**numbers)
    other = FAMILIES[draw.choice([each for each in FAMILIES if each != family])].format(**numbers)
    misread = FAMILIES[family].format(k=numbers["k"] + 1, m=numbers["m"])
    wrong = [_code(name, other), _code(name, misread), _code(name, result.rpartition(" ")[0])]
    tests = [f"assert {name}({x}) == {calculate(result.replace('x', f'({x})'))}" for x in _TESTED]
    payload = {
        "tests": "\n".join(tests),
        "entry_point": None,  # the assertions call the function by its name
        "script": [answer(_code(name, result))],
        "mistakes": [[answer(code)] for code in wrong],
    }
    return {
        "family": family,
        "prompt": draw.choice(_WORDINGS).format(name=name, result=result),
        "payload": payload,
    }


def _code(name: str, result: str) -> str:
    return f"def {name}(x):\n    return {result}"


def _load(inputs: SourceInputs) -> Tables:
    return make_functions(
        inputs.tasks.sizes.model_dump(), inputs.tasks.split_seed, inputs.environment
    )


SOURCE = Source("code", _load, metrics=SCORED_BY_ENVIRONMENT)

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

import json
import random
from typing import Any

from agent_r1 import tables
from agent_r1.parameters import ParameterError
from agent_r1.seeding import derive_seed
from agent_r1.tasks.script import answer
from agent_r1.tasks.source import JUDGED_BY_ENVIRONMENT, Source, SourceInputs, Tables
from agent_r1.tasks.splits import in_hash_order
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
_DRAWS = 200
"""Draws until the task is a new one."""


def make_functions(sizes: dict[str, int], seed: int, environment: str = "code") -> Tables:
    """The table ``tasks``, and no documents.

    Args:
        sizes: split → tasks.
        seed: decides the tasks and the partitions.
        environment: the environment that plays them.

    Raises:
        ParameterError: a size exceeds the number of different tasks.
    """
    order, begin, names = in_hash_order(NAMES, seed, "functions"), 0, {}
    for part, share in _PARTS.items():
        end = begin + round(share * len(NAMES))
        names[part], begin = order[begin:end], end
    rows: list[dict[str, Any]] = []
    texts: set[str] = set()
    for split, size in sizes.items():
        families = [name for name in FAMILIES if (name in _OOD) == (split == "ood")]
        for number in range(size):
            draw = random.Random(derive_seed(seed, "functions", split, number))
            family = families[number % len(families)]
            for _ in range(_DRAWS):
                row = _task(family, draw.choice(names.get(split, names["train"])), draw)
                if row["prompt"] not in texts:
                    break
            else:
                raise ParameterError(
                    f"tasks.sizes.{split} is {size}, but only {number} different functions exist"
                )
            texts.add(row["prompt"])
            name = f"functions:{split}:{number}"
            rows.append({"task_id": name, "environment": environment, "split": split, **row})
    return tables.from_rows(rows, "tasks"), tables.empty("documents")


def _task(family: str, name: str, draw: random.Random) -> dict[str, Any]:
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
        "answers": [],  # only the tests decide
        "hops": None,
        "payload": json.dumps(payload),
    }


def _code(name: str, result: str) -> str:
    return f"def {name}(x):\n    return {result}"


def _load(inputs: SourceInputs) -> Tables:
    return make_functions(
        inputs.tasks.sizes.model_dump(), inputs.tasks.split_seed, inputs.environment
    )


SOURCE = Source("code", _load, metrics=JUDGED_BY_ENVIRONMENT)

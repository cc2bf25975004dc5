"""Draw tasks from templates. A task depends on its split and number; no prompt occurs twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_r1.parameters import ParameterError
from agent_r1.seeding import derive_seed
from agent_r1.tasks.rows import task_row, without_documents
from agent_r1.tasks.source import Tables
from agent_r1.tasks.splits import in_hash_order

_DRAWS = 200
"""Attempts to draw a task with a new prompt."""

DrawTask = Callable[[str, int, random.Random], dict[str, Any]]
"""(split, number, random generator) → arguments of `task_row` but id, environment and split."""


def partitions(
    names: Sequence[str], shares: Mapping[str, float], seed: int, source: str
) -> dict[str, list[str]]:
    """Partition → its part of ``names``, which are divided in the order of their hashes."""
    order, begin, parts = in_hash_order(names, seed, source), 0, {}
    for part, share in shares.items():
        end = begin + round(share * len(names))
        parts[part], begin = order[begin:end], end
    return parts


def draw_tasks(
    source: str, sizes: Mapping[str, int], seed: int, environment: str, draw_task: DrawTask
) -> Tables:
    """The table ``tasks``, and no documents.

    Args:
        source: the source's name in ``conf/``; task ids begin with it.
        sizes: split → number of tasks.
        seed: decides the tasks.
        environment: the environment that plays them.
        draw_task: draws one task; called again if its prompt is not new.

    Raises:
        ParameterError: a size exceeds the number of different tasks.
    """
    rows: list[dict[str, Any]] = []
    prompts: set[str] = set()
    for split, size in sizes.items():
        for number in range(size):
            draw = random.Random(derive_seed(seed, source, split, number))
            for _ in range(_DRAWS):
                task = draw_task(split, number, draw)
                if task["prompt"] not in prompts:
                    break
            else:
                raise ParameterError(
                    f"tasks.sizes.{split} is {size}, but only {number} different "
                    f"{source.replace('_', ' ')} exist"
                )
            prompts.add(task["prompt"])
            rows.append(task_row(f"{source}:{split}:{number}", environment, split, **task))
    return without_documents(rows)

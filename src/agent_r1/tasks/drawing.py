"""Tasks drawn from templates: each from its split and number, no two with the same prompt."""

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
"""Tries for a task that is not there yet."""

DrawTask = Callable[[str, int, random.Random], dict[str, Any]]
"""Split, number, source of chance → what `task_row` takes besides id, environment and split."""


def partitions(
    names: Sequence[str], shares: Mapping[str, float], seed: int, source: str
) -> dict[str, list[str]]:
    """Partition → its part of ``names``, dealt out in the order of their hashes."""
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
        source: its name in ``conf/``; the ids of the tasks begin with it.
        sizes: split → tasks.
        seed: decides the tasks.
        environment: plays them.
        draw_task: makes one; it is asked again if the prompt is not new.

    Raises:
        ParameterError: a split is to have more tasks than there are.
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
                    f"tasks.sizes.{split} is {size}, but there are only {number} "
                    + source.replace("_", " ")
                )
            prompts.add(task["prompt"])
            rows.append(task_row(f"{source}:{split}:{number}", environment, split, **task))
    return without_documents(rows)

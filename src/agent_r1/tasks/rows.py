"""Rows of the table ``tasks``, as every loader makes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_r1 import tables
from agent_r1.tasks.source import Tables


def task_row(
    task_id: str,
    environment: str,
    split: str,
    *,
    family: str,
    prompt: str,
    payload: Mapping[str, Any],
    answers: Sequence[str] = (),
    hops: int | None = None,
) -> dict[str, Any]:
    """One task. See `agent_r1.schemas` for the columns.

    Args:
        payload: other data that the environment needs; stored as JSON.
        answers: accepted answers; empty if only the environment or its tests decide.
        hops: number of facts that lead to the answer; None if they are not counted.
    """
    return {
        "task_id": task_id,
        "environment": environment,
        "split": split,
        "family": family,
        "prompt": prompt,
        "answers": list(answers),
        "hops": hops,
        "payload": json.dumps(payload, ensure_ascii=False),
    }


def without_documents(rows: Sequence[Mapping[str, Any]]) -> Tables:
    """The table ``tasks`` with these rows, and an empty table ``documents``."""
    return tables.from_rows(rows, "tasks"), tables.empty("documents")

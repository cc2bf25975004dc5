"""Small step tables for tests: only what a test speaks of has to be said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from agent_r1 import tables


def step(
    trajectory: str,
    index: int = 0,
    context: Sequence[int] = (1, 2),
    action: Sequence[int] = (3, 4),
    **columns: Any,
) -> dict[str, Any]:
    """A row of ``rollouts``; ids read ``task/sample``."""
    task, _, sample = trajectory.partition("/")
    row = {
        "trajectory_id": trajectory,
        "task_id": task,
        "group_id": task,
        "sample_index": int(sample or 0),
        "step_index": index,
        "environment": "toy",
        "policy_version": "v",
        "state_key": "s",
        "context_token_ids": list(context),
        "context_prefix": len(context),
        "context_start": 0,
        "action_token_ids": list(action),
        "action_logprobs": [-1.0] * len(action),
        "temperature": 1.0,
        "action_text": "",
        "action_type": "tool_call",
        "tool_calls": "[]",
        "tool_results": "[]",
        "env_reward": 0.0,
        "terminated": False,
        "truncated": False,
        "finish_reason": "stop",
        "prompt_tokens": len(context),
        "completion_tokens": len(action),
        "seed": 0,
        "info": "{}",
    }
    return row | columns


def rollouts(*rows: dict[str, Any]) -> pd.DataFrame:
    return tables.from_rows(rows, "rollouts")


def tasks(**answers: Sequence[str]) -> pd.DataFrame:
    """A task per keyword, with its accepted answers."""
    rows = [
        {
            "task_id": name,
            "environment": "toy",
            "split": "train",
            "family": "f",
            "prompt": "?",
            "answers": list(accepted),
            "payload": "{}",
        }
        for name, accepted in answers.items()
    ]
    return tables.from_rows(rows, "tasks")


def rewards(table: pd.DataFrame, **by_trajectory: float | None) -> pd.DataFrame:
    """A ``rewards`` table for ``table``: the trajectory's reward on its last step.

    Keywords are trajectory ids with ``__`` for ``/``.
    """
    wanted = {name.replace("__", "/"): value for name, value in by_trajectory.items()}
    last = table.groupby("trajectory_id")["step_index"].max()
    rows = []
    for name, index in zip(table["trajectory_id"], table["step_index"], strict=True):
        total = wanted[name]
        here = total if total is None or index == last[name] else 0.0
        rows.append(
            {
                "trajectory_id": name,
                "step_index": index,
                "reward": here,
                "components": "{}",
                "trajectory_reward": total,
            }
        )
    return tables.from_rows(rows, "rewards")


def per_token(table: pd.DataFrame, schema: str, **columns: Sequence[Any]) -> pd.DataFrame:
    """A table of ``schema`` whose list columns are given flat, cut by the actions of ``table``."""
    lengths = [len(action) for action in table["action_token_ids"]]
    rows, begin = [], 0
    keys = zip(table["trajectory_id"], table["step_index"], lengths, strict=True)
    for name, index, length in keys:
        row = {"trajectory_id": name, "step_index": index}
        row |= {key: list(flat[begin : begin + length]) for key, flat in columns.items()}
        rows.append(row | ({"group_size": 1} if schema == "advantages" else {}))
        begin += length
    return tables.from_rows(rows, schema)

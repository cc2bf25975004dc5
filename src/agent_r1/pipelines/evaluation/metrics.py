"""Evaluation trajectories → the table `evaluation`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from agent_r1 import tables
from agent_r1.mdp import ActionType, EndReason, ToolStatus
from agent_r1.rewards.answers import exact_match, extract_answer, f1
from agent_r1.tables.trajectories import find_trajectories


def attempt_outcomes(
    rollouts: pd.DataFrame,
    rewards: pd.DataFrame,
    tasks: pd.DataFrame,
    greedy_from: int,
    by_reward: Collection[str] = (),
) -> pd.DataFrame:
    """How each trajectory went.

    Args:
        rollouts, rewards: the tables of these names, row for row.
        tasks: the attempted tasks.
        greedy_from: attempts with this sample index and above were greedy.
        by_reward: environments in which the outcome term says what is right, because texts cannot
            be compared: without its point, "2.5" is the same as "25".

    Returns:
        A row per trajectory: ``split``, ``family``, ``task_id``, ``greedy``, ``exact_match`` and
        ``f1`` of the answer (0 where there is none; both say whether the task was solved where it
        has no accepted answers, because only its environment can tell, and ``by_reward``),
        ``steps``, ``tool_calls``, ``tool_errors``, ``trajectory_return``. What the infrastructure
        ended is null in ``exact_match`` and ``f1``, and what is not scored in
        ``trajectory_return``: unknown is not zero.
    """
    about = {task["task_id"]: task for task in tasks.to_dict("records")}
    trajectories = find_trajectories(rollouts, "rollouts")
    columns = ("task_id", "sample_index", "action_type", "action_text", "tool_results")
    steps = {name: rollouts[name].tolist() for name in columns}
    ends = rollouts["end_reason"].to_numpy(dtype=object, na_value=None)
    returns = rewards["trajectory_reward"].tolist()
    solved = rewards["correct"].tolist()
    rows = []
    for first, end in zip(trajectories.offsets[:-1], trajectories.offsets[1:], strict=True):
        own = trajectories.order[first:end]
        last = own[-1]
        task = about[steps["task_id"][last]]
        if len(task["answers"]) and task["environment"] not in by_reward:
            exact, overlap = _scores(
                ends[last], steps["action_type"][last], steps["action_text"][last], task["answers"]
            )
        else:
            exact = overlap = np.nan if pd.isna(solved[last]) else float(solved[last])
        calls, errors = tool_outcomes(steps["tool_results"][row] for row in own)
        rows.append(
            {
                "split": task["split"],
                "family": task["family"],
                "task_id": task["task_id"],
                "greedy": steps["sample_index"][last] >= greedy_from,
                "exact_match": exact,
                "f1": overlap,
                "steps": len(own),
                "tool_calls": calls,
                "tool_errors": errors,
                "trajectory_return": returns[last],
            }
        )
    return pd.DataFrame(rows)


def _scores(
    end_reason: str, action_type: str, text: str, accepted: Sequence[str]
) -> tuple[float, float]:
    """Exact match and F1 by a trajectory's last step: an answer is the last action or none."""
    if end_reason == EndReason.INFRASTRUCTURE:
        return np.nan, np.nan
    if action_type != ActionType.ANSWER:
        return 0.0, 0.0
    answer = extract_answer(text)
    return exact_match(answer, accepted), f1(answer, accepted)


def tool_outcomes(tool_results: Iterable[str]) -> tuple[int, int]:
    """Tool calls of a trajectory, and how many of them failed.

    Args:
        tool_results: the column of the rollouts, a JSON list per step.
    """
    statuses = [result["status"] for text in tool_results for result in json.loads(text)]
    return len(statuses), sum(status != ToolStatus.OK for status in statuses)


def evaluation_table(attempts: pd.DataFrame) -> pd.DataFrame:
    """The table `evaluation`: each split as a whole, then its families, all by name.

    Args:
        attempts: what `attempt_outcomes` gives.
    """
    rows: list[dict[str, Any]] = []
    for split, of_split in attempts.groupby("split"):
        rows.append(_row(of_split, split, None))
        for family, of_family in of_split.groupby("family"):
            rows.append(_row(of_family, split, family))
    return tables.from_rows(rows, "evaluation")


def _row(attempts: pd.DataFrame, split: Any, family: Any) -> dict[str, Any]:
    greedy = attempts["greedy"].astype(bool)
    sampled = attempts[~greedy]
    calls = int(sampled["tool_calls"].sum())
    return {
        "split": str(split),
        "family": None if family is None else str(family),
        "n": attempts["task_id"].nunique(),
        "exact_match": _mean(sampled["exact_match"]),
        "greedy_exact_match": _mean(attempts.loc[greedy, "exact_match"]),
        "f1": _mean(sampled["f1"]),
        "mean_steps": _mean(sampled["steps"]),
        "tool_error_rate": int(sampled["tool_errors"].sum()) / calls if calls else 0.0,
        "mean_return": _mean(sampled["trajectory_return"]),
    }


def _mean(values: pd.Series) -> float | None:
    """Mean of what is known, summed in one order so that no bit depends on the table's."""
    known = sorted(float(value) for value in values if not pd.isna(value))
    return sum(known) / len(known) if known else None

"""Evaluation trajectories → the table `evaluation`."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Mapping
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
    """The outcome of each trajectory.

    Args:
        rollouts, rewards: the tables of these names, with the same rows.
        tasks: the attempted tasks.
        greedy_from: attempts with this sample index or a higher one are greedy.
        by_reward: environments where the outcome term decides, because comparing texts would be
            wrong: without punctuation "2.5" equals "25".

    Returns:
        One row per trajectory: ``split``, ``family``, ``task_id``, ``greedy``, ``exact_match`` and
        ``f1`` of the answer (0 without an answer), ``steps``, ``tool_calls``, ``tool_errors``,
        ``trajectory_return``. For tasks without accepted answers and for ``by_reward``,
        ``exact_match`` and ``f1`` are 1 if the task was solved, else 0. Unknown is not zero: a
        trajectory that the infrastructure ended is null in ``exact_match`` and ``f1``, and an
        unscored one in ``trajectory_return``.
    """
    about = {task["task_id"]: task for task in tasks.to_dict("records")}
    trajectories = find_trajectories(rollouts, "rollouts")
    columns = ("task_id", "sample_index", "action_type", "action_text", "tool_results")
    steps = {name: rollouts[name].tolist() for name in columns}
    failed = rollouts["end_reason"] == EndReason.INFRASTRUCTURE.value
    steps["outage"] = failed.to_numpy(bool, na_value=False).tolist()
    steps |= {name: rewards[name].tolist() for name in ("trajectory_reward", "correct")}
    rows = []
    for first, end in zip(trajectories.offsets[:-1], trajectories.offsets[1:], strict=True):
        own = trajectories.order[first:end]
        last = {name: column[own[-1]] for name, column in steps.items()}
        task = about[last["task_id"]]
        exact, overlap = _scores(last, task, task["environment"] in by_reward)
        calls, errors = tool_outcomes(steps["tool_results"][row] for row in own)
        rows.append(
            {
                "split": task["split"],
                "family": task["family"],
                "task_id": task["task_id"],
                "greedy": last["sample_index"] >= greedy_from,
                "exact_match": exact,
                "f1": overlap,
                "steps": len(own),
                "tool_calls": calls,
                "tool_errors": errors,
                "trajectory_return": last["trajectory_reward"],
            }
        )
    return pd.DataFrame(rows)


def _scores(
    last: Mapping[str, Any], task: Mapping[Hashable, Any], by_reward: bool
) -> tuple[float, float]:
    """Exact match and F1 from a trajectory's last step; only a last action can be the answer."""
    if by_reward or not len(task["answers"]):
        solved = np.nan if pd.isna(last["correct"]) else float(last["correct"])
        return solved, solved
    if last["outage"]:
        return np.nan, np.nan
    if last["action_type"] != ActionType.ANSWER:
        return 0.0, 0.0
    answer = extract_answer(last["action_text"])
    return exact_match(answer, task["answers"]), f1(answer, task["answers"])


def tool_outcomes(tool_results: Iterable[str]) -> tuple[int, int]:
    """The number of tool calls in a trajectory, and how many of them failed.

    Args:
        tool_results: the column of the rollouts, one JSON list per step.
    """
    statuses = [result["status"] for text in tool_results for result in json.loads(text)]
    return len(statuses), sum(status != ToolStatus.OK for status in statuses)


def evaluation_table(attempts: pd.DataFrame) -> pd.DataFrame:
    """The table `evaluation`: for each split a row for the whole, then one per family, by name.

    Args:
        attempts: the result of `attempt_outcomes`.
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
    """Mean of the known values, summed in sorted order so that the row order does not matter."""
    known = sorted(float(value) for value in values if not pd.isna(value))
    return sum(known) / len(known) if known else None

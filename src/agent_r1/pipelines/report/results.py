"""The results in an experiment's committed tables, in the form that the report needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from agent_r1.datasets import History

POLICIES = {"base": "Base", "sft": "SFT", "rl": "RL"}
"""The compared policies: key in ``summary.json`` → title."""

REPORTED_SPLITS = ("in_domain", "held_out", "ood")
"""The reported splits; ``validation`` is only for tuning."""

EVALUATION_COLUMNS = (
    "exact_match",
    "greedy_exact_match",
    "f1",
    "mean_steps",
    "tool_error_rate",
    "mean_return",
)
"""Columns of an evaluation that are in ``summary.json``."""

_DIGITS = 6


@dataclass(frozen=True)
class Results:
    """An experiment's results; iteration 0 is the policy that RL starts from."""

    experiment: str
    iterations: int
    """Number of committed RL iterations."""
    wall_seconds: float
    """Seconds spent in nodes, in the newest run of each; time between runs does not count."""
    evaluations: dict[str, pd.DataFrame]
    """Key of `POLICIES` → evaluation; policies that were not evaluated are missing."""
    curves: pd.DataFrame
    """One row per iteration: ``reward``, ``correct``, ``validation`` and ``validation_greedy``
    (exact match), ``kl``, ``entropy`` (nats per token), ``sampled`` (trajectories)."""
    stage_seconds: pd.Series
    """Seconds by node name, largest first."""


def read_results(history: History, experiment: str) -> Results:
    """`Results` from the committed tables; the experiment may be unfinished."""
    iterations = sum(_number(name) > 0 for name in history.iterations("update_metrics"))
    seconds = history.node_runs.groupby("node")["seconds"].sum().sort_values(ascending=False)
    return Results(
        experiment=experiment,
        iterations=iterations,
        wall_seconds=round(float(seconds.sum()), 3),
        evaluations=_evaluations(history.iterations("evaluation")),
        curves=_curves(history),
        stage_seconds=seconds,
    )


def summarize(results: Results) -> dict[str, Any]:
    """The content of ``summary.json``: plain Python numbers, None if not measured."""
    return {
        "experiment": results.experiment,
        "iterations": results.iterations,
        "wall_seconds": results.wall_seconds,
        "evaluations": {
            policy: {
                split: _cell(row)
                for split in REPORTED_SPLITS
                if (row := whole_split(evaluation, split)) is not None
            }
            for policy, evaluation in results.evaluations.items()
        },
    }


def whole_split(evaluation: pd.DataFrame, split: str) -> Mapping[str, Any] | None:
    """The row for all families of a split; None if it was not evaluated."""
    rows = evaluation[(evaluation["split"] == split) & evaluation["family"].isna()]
    return None if rows.empty else {str(name): value for name, value in rows.iloc[0].items()}


def number(value: Any) -> float | None:
    """A rounded plain float; None for null and NaN."""
    return None if pd.isna(value) else round(float(value), _DIGITS)


def _cell(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"n": int(row["n"])} | {metric: number(row[metric]) for metric in EVALUATION_COLUMNS}


def _number(iteration: str) -> int:
    """``iter_00003`` → 3; -1 for ``base``."""
    _, _, digits = iteration.rpartition("_")
    return int(digits) if iteration.startswith("iter_") else -1


def _evaluations(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    found = {"base": tables.get("base"), "sft": tables.get("iter_00000")}
    trained = [name for name in tables if _number(name) > 0]
    found["rl"] = tables[max(trained, key=_number)] if trained else None
    return {policy: table for policy, table in found.items() if table is not None}


def _curves(history: History) -> pd.DataFrame:
    columns: dict[str, dict[int, float | None]] = {}

    def put(column: str, iteration: str, value: Any) -> None:
        if _number(iteration) >= 0:
            columns.setdefault(column, {})[_number(iteration)] = number(value)

    for iteration, rewards in history.iterations("rewards").items():
        trajectories = rewards.drop_duplicates("trajectory_id")
        put("sampled", iteration, len(trajectories))
        put("reward", iteration, _mean(trajectories["trajectory_reward"]))
        put("correct", iteration, _mean(trajectories["correct"]))
    for iteration, validation in history.iterations("validation").items():
        row = whole_split(validation, "validation")
        if row is not None:
            put("validation", iteration, row["exact_match"])
            put("validation_greedy", iteration, row["greedy_exact_match"])
    for iteration, metrics in history.iterations("update_metrics").items():
        means = metrics.groupby("metric")["value"].mean()
        for column, metric in (("kl", "reference_kl"), ("entropy", "entropy")):
            if metric in means.index and _number(iteration) > 0:
                put(column, iteration, means[metric])
    names = ("reward", "correct", "validation", "validation_greedy", "kl", "entropy", "sampled")
    index = sorted({iteration for values in columns.values() for iteration in values})
    frame = pd.DataFrame({name: pd.Series(columns.get(name, {}), dtype=float) for name in names})
    return frame.reindex(index)


def _mean(values: Iterable[Any]) -> float | None:
    """Mean of the known values: an unscored trajectory is not zero."""
    known = [float(value) for value in values if not pd.isna(value)]
    return sum(known) / len(known) if known else None

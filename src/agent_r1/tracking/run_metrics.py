"""The metrics in a node's outputs, for MLflow and the progress display."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from agent_r1.mdp import EndReason


class Point(NamedTuple):
    """One value of a metric."""

    name: str
    """Such as ``reward/mean``; only characters that MLflow accepts."""
    value: float
    step: int
    """Optimizer step within the iteration for metrics of an update, else 0."""


EVALUATED = ("exact_match", "greedy_exact_match", "f1", "mean_steps", "mean_return")
"""Columns of an evaluation that become metrics, per split."""


def has_points(dataset: str) -> bool:
    """Whether metrics are read from this dataset."""
    return dataset.rpartition(".")[2] in _READERS


def points(dataset: str, data: object) -> list[Point]:
    """The metrics in one output of a node; empty for a dataset without metrics."""
    read = _READERS.get(dataset.rpartition(".")[2])
    if read is None or not isinstance(data, pd.DataFrame) or data.empty:
        return []
    return [point for point in read(data) if math.isfinite(point.value)]


def _rewards(rewards: pd.DataFrame) -> Iterator[Point]:
    """Means over the scored trajectories. An unscored one does not count as 0."""
    trajectories = rewards.drop_duplicates("trajectory_id")
    scored = trajectories["trajectory_reward"].dropna().astype(float)
    if len(scored):
        yield Point("reward/mean", float(scored.mean()), 0)
        yield Point("reward/std", float(scored.std(ddof=0)), 0)
    yield Point("reward/unscored", float(1 - len(scored) / len(trajectories)), 0)
    correct = trajectories["correct"].dropna()
    if len(correct):
        yield Point("reward/correct", float(correct.astype(bool).mean()), 0)


def _rollouts(rollouts: pd.DataFrame) -> Iterator[Point]:
    trajectories = rollouts["trajectory_id"].nunique()
    tokens = int(rollouts["completion_tokens"].sum())
    yield Point("rollout/trajectories", float(trajectories), 0)
    yield Point("rollout/steps_per_trajectory", len(rollouts) / trajectories, 0)
    yield Point("rollout/tokens", float(tokens), 0)
    yield Point("rollout/truncated", float(rollouts["truncated"].sum()) / trajectories, 0)
    malformed = rollouts["action_type"].isin(["malformed", "cut"])
    yield Point("rollout/malformed_actions", float(malformed.mean()), 0)
    failed = rollouts.loc[rollouts["end_reason"] == EndReason.INFRASTRUCTURE.value, "info"]
    down = {json.loads(info).get("unavailable_tool") for info in failed} - {None}
    yield Point("rollout/infrastructure_failures", len(failed) / trajectories, 0)
    yield Point("rollout/unavailable_tools", float(len(down)), 0)


def _sampled_groups(groups: pd.DataFrame) -> Iterator[Point]:
    """Dynamic sampling; ``missing_groups``: requested groups that are still without a signal."""
    dropped = ~groups["kept"].astype(bool)
    wanted = int((groups["round"] == 1).sum())
    yield Point("rollout/sampling_rounds", float(groups["round"].max()), 0)
    yield Point("rollout/dropped_groups", float(dropped.sum()), 0)
    yield Point("rollout/dropped_share", float(dropped.mean()), 0)
    yield Point("rollout/missing_groups", float(wanted - groups["reason"].isna().sum()), 0)


def _update(metrics: pd.DataFrame) -> Iterator[Point]:
    for name, value, step in zip(metrics["metric"], metrics["value"], metrics["step"], strict=True):
        yield Point(f"update/{name}", float(value), int(step))


def _evaluation(evaluation: pd.DataFrame) -> Iterator[Point]:
    whole = evaluation[evaluation["family"].isna()]
    for _, row in whole.iterrows():
        for column in EVALUATED:
            if not pd.isna(row[column]):  # no greedy attempt, or nothing was scored
                yield Point(f"{row['split']}/{column}", float(row[column]), 0)


_READERS = {
    "rewards": _rewards,
    "rollouts": _rollouts,
    "sampled_groups": _sampled_groups,
    "update_metrics": _update,
    "evaluation": _evaluation,
    "validation": _evaluation,
}

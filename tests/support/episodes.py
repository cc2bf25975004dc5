"""Whole trajectories for tests of advantages: what happened, turn by turn, becomes the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from agent_r1 import tables
from agent_r1.pipelines.advantage.nodes import compute_advantages
from tests.support.step_tables import rollouts, step

Turn = dict[str, Any]
Episode = list[dict[str, Any]]


def turn(
    reward: float | None = 0.0,
    tokens: int = 2,
    values: Sequence[float | None] | None = None,
    policy: Sequence[float] | None = None,
    reference: Sequence[float] | None = None,
    **columns: Any,
) -> Turn:
    """One step: its reward, its number of action tokens, and what is known of each of them."""
    return {
        "reward": reward,
        "tokens": tokens,
        "values": values,
        "policy": [-1.0] * tokens if policy is None else policy,
        "reference": reference,
        "columns": columns,
    }


def episode(
    name: str,
    *turns: Turn,
    end_reason: str = "answered",
    bootstrap: float | None = None,
    scored: bool = True,
    **columns: Any,
) -> Episode:
    """A trajectory ``task/sample``; it is truncated unless it ended ``answered``."""
    ended = end_reason in ("answered", "environment")
    total = sum(part["reward"] or 0.0 for part in turns) if scored else None
    rows = []
    for index, part in enumerate(turns):
        last = index == len(turns) - 1
        rows.append(
            {
                "rollouts": step(name, index, action=range(part["tokens"]))
                | {"terminated": last and ended, "truncated": last and not ended}
                | {"end_reason": end_reason if last else None}
                | columns
                | part["columns"],
                "rewards": {"reward": part["reward"] if scored else None}
                | {"components": "{}", "trajectory_reward": total},
                "logprobs": {
                    "policy_logprobs": part["policy"],
                    "reference_logprobs": part["reference"],
                    "values": part["values"],
                    "bootstrap_value": bootstrap if last else None,
                },
            }
        )
        for table in ("rewards", "logprobs"):
            rows[-1][table] |= {"trajectory_id": name, "step_index": index}
    return rows


def tables_of(*episodes: Episode) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """``rollouts``, ``rewards`` and ``logprobs``."""
    rows = [row for part in episodes for row in part]
    return (
        rollouts(*(row["rollouts"] for row in rows)),
        tables.from_rows([row["rewards"] for row in rows], "rewards"),
        tables.from_rows([row["logprobs"] for row in rows], "logprobs"),
    )


def advantages(*episodes: Episode, **parameters: Any) -> pd.DataFrame:
    """The table ``advantages`` of these trajectories, by the node."""
    return compute_advantages(*tables_of(*episodes), parameters)


def column(table: pd.DataFrame, name: str = "advantages") -> list[list[Any]]:
    """A list column as one flat list per trajectory, in order of their ids."""
    ordered = table.sort_values(["trajectory_id", "step_index"])
    return [
        [None if pd.isna(item) else item for row in rows for item in np.asarray(row)]
        for _, rows in ordered.groupby("trajectory_id")[name]
    ]


def single_turns(*rewards: float | None, tokens: int = 1, group: str = "q") -> list[Episode]:
    """One group of one-turn trajectories; a reward of None is not scored."""
    return [
        episode(f"{group}/{index}", turn(reward, tokens), scored=reward is not None)
        for index, reward in enumerate(rewards)
    ]

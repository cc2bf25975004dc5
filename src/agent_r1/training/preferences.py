"""Preference pairs: the best and the worst trajectory of each group."""

from __future__ import annotations

import numpy as np
import pandas as pd

from agent_r1 import tables
from agent_r1.advantages.groups import group_statistics
from agent_r1.tables.trajectories import align, codes, find_trajectories


def best_against_worst(rollouts: pd.DataFrame, rewards: pd.DataFrame) -> pd.DataFrame:
    """The ``preferences`` table of conformed tables: at most one pair per group.

    Unscored trajectories are ignored; a group with equal rewards gives no pair. Of equal
    rewards, the trajectory whose id sorts first is used.

    Raises:
        SchemaError: the tables do not hold the same steps.
    """
    rewards = align(rewards, "rewards", rollouts)
    trajectories = find_trajectories(rollouts, "rollouts")
    group_of_row, names = codes(rollouts["group_id"])
    groups = group_of_row[trajectories.first_rows]
    scores = (
        rewards["trajectory_reward"]
        .to_numpy(dtype=np.float64, na_value=np.nan)
        .take(trajectories.last_rows)
    )
    zero_variance = group_statistics(scores, groups).zero_variance
    rows = []
    for group in np.flatnonzero(~zero_variance):
        members = np.flatnonzero((groups == group) & ~np.isnan(scores))
        best = members[scores[members].argmax()]
        worst = members[scores[members].argmin()]
        rows.append(
            {
                "pair_id": f"{names[group]}/0",
                "group_id": names[group],
                "chosen_trajectory_id": trajectories.ids[best],
                "rejected_trajectory_id": trajectories.ids[worst],
                "chosen_reward": scores[best],
                "rejected_reward": scores[worst],
            }
        )
    return tables.from_rows(rows, "preferences")

"""Preference pairs: best against worst, once per group, never for a tie."""

from __future__ import annotations

import pytest

from agent_r1 import tables
from agent_r1.pipelines.preferences.nodes import build_preferences
from tests.support.step_tables import rewards, rollouts, step

TABLE = rollouts(
    *(step(f"p/{index}") for index in range(4)),
    step("q/0", 0),
    step("q/0", 1),
    step("q/1"),
    step("r/0"),
    step("r/1"),
)
REWARDS = rewards(
    TABLE, p__0=0.5, p__1=1.0, p__2=None, p__3=0.0, q__0=0.3, q__1=0.3, r__0=1.0, r__1=None
)
DPO = "dpo"


def test_the_best_is_chosen_against_the_worst_and_ties_give_no_pair() -> None:
    pairs = build_preferences(TABLE, REWARDS, DPO)
    assert pairs.to_dict("records") == [
        {
            "pair_id": "p/0",
            "group_id": "p",
            "chosen_trajectory_id": "p/1",
            "rejected_trajectory_id": "p/3",
            "chosen_reward": 1.0,
            "rejected_reward": 0.0,
        }
    ]
    assert pairs.equals(tables.conform(pairs, "preferences"))


def test_row_order_does_not_matter() -> None:
    shuffled = TABLE.sample(frac=1, random_state=0).reset_index(drop=True)
    assert build_preferences(shuffled, REWARDS, DPO).equals(build_preferences(TABLE, REWARDS, DPO))


@pytest.mark.parametrize("objective", [None, "ppo_clip"])
def test_other_objectives_get_the_empty_table(objective: str | None) -> None:
    assert build_preferences(TABLE, REWARDS, objective).equals(tables.empty("preferences"))
    assert build_preferences(TABLE, REWARDS).equals(tables.empty("preferences"))

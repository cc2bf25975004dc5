"""Parameters that are valid alone and useless together are refused before any work starts."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from agent_r1.advantages.registry import ESTIMATORS
from agent_r1.configuration.conflicts import CONFLICTS, conflicts
from agent_r1.configuration.groups import read_parameters
from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.schemas import SchemaError
from tests.support.step_tables import per_token, rewards, rollouts, step

CRITIC = {"logprobs": {"values": True}, "update": {"critic": {"backbone": "own"}}}


def found(**groups: Any) -> list[str]:
    return [str(problem) for problem in conflicts(read_parameters(groups))]


CASES: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"advantage": {"estimator": "gae"}, "update": {"critic": {"backbone": "shared"}}},
        [
            "advantage.estimator is gae, which reads the critic's values: set logprobs.values to",
            "update.critic.backbone is shared, and the critic learns from its own values: set",
        ],
    ),
    (
        {"advantage": {"estimator": "gae"}, "logprobs": {"values": True}},
        ["advantage.estimator is gae, and without a critic the value of every state is 0: set"],
    ),
    (
        CRITIC,
        [
            "update.critic.backbone is own, but advantage.estimator grpo has no returns that a "
            "critic could learn: set advantage.estimator to one of gae, returns"
        ],
    ),
    (
        {"advantage": {"kl_coef": 0.1}, "logprobs": {"reference": False}},
        ["advantage.kl_coef is 0.1, which compares with the reference policy: set logprobs.refer"],
    ),
    (
        {"update": {"kl_coef": 0.1, "kl_target": 0.2}, "logprobs": {"reference": False}},
        ["update.kl_coef is 0.1, which compares with the reference policy: set logprobs.reference"],
    ),
    (
        {"update": {"objective": "dpo"}, "logprobs": {"reference": False}},
        ["update.objective is dpo, which compares with the reference policy: set logprobs.referen"],
    ),
    (
        {"advantage": {"kl_coef": 0.1}, "update": {"objective": "dpo"}},
        ["advantage.kl_coef is 0.1, but update.objective dpo reads preferences, which are made of"],
    ),
    (
        {"advantage": {"whiten_by": "environment"}},
        ["advantage.whiten_by is environment, but nothing is whitened: set advantage.whiten to"],
    ),
    (
        {"rollout": {"group_size": 1}},
        [
            "rollout.group_size is 1, but advantage.estimator grpo compares the trajectories of a "
            "group, so every advantage would be 0: set rollout.group_size to 2 or more, or "
            "advantage.estimator to one of gae, reinforce_plus_plus, returns"
        ],
    ),
    (
        {
            "rollout": {"group_size": 1},
            "advantage": {"estimator": "returns"},
            "update": {"objective": "sft"},
        },
        ["rollout.group_size is 1, but update.objective sft chooses among the trajectories of a"],
    ),
    (
        {"update": {"strategy": "deepspeed"}, "model": {"dtype": "bfloat16"}},
        ["model.dtype is bfloat16, and update.strategy deepspeed trains in float32: set model.dt"],
    ),
    (
        {"reward": {"terms": {"outcome": None}, "environments": {"multihop_qa": {"terms": {}}}}},
        ["reward.terms is empty, so every reward would be 0: give it a term"],
    ),
    (
        {"demonstrations": {"count": 0}},
        ["demonstrations.count is 0, so the warm start has nothing to imitate: set sft.enabled"],
    ),
    (
        {"stop": {"exact_match": 0.9}, "evaluation": {"every": 0}},
        ["stop.exact_match is 0.9, but evaluation.every is 0, so nothing is measured before"],
    ),
]


@pytest.mark.parametrize(("groups", "messages"), CASES)
def test_what_does_not_go_together_is_named_with_a_remedy(groups, messages) -> None:
    lines = found(**groups)
    assert [line[: len(message)] for line, message in zip(lines, messages, strict=True)] == messages


def test_every_conflict_has_a_case() -> None:
    shown = [message for _, messages in CASES for message in messages]
    assert len(shown) == len(set(shown)) == len(CONFLICTS)


@pytest.mark.parametrize(
    "groups",
    [
        {},
        CRITIC | {"advantage": {"estimator": "gae"}},
        CRITIC | {"advantage": {"estimator": "returns"}, "rollout": {"group_size": 1}},
        {"logprobs": {"reference": False}},
        {"demonstrations": {"count": 0}, "sft": {"enabled": False}},
        {"advantage": {"whiten_by": "environment", "whiten": True}},
        {"advantage": {"whiten_by": "environment", "estimator": "reinforce_plus_plus"}},
        {"advantage": {"kl_coef": 0.1}, "update": {"objective": "sft"}},
        {"rollout": {"group_size": 2}, "update": {"objective": "dpo", "kl_coef": 0.1}},
        {"advantage": {"estimator": "reinforce_plus_plus"}, "rollout": {"group_size": 1}},
        {"reward": {"terms": {}, "environments": {"multihop_qa": {"terms": {"outcome": {}}}}}},
        {"update": {"mini_batch_trajectories": 10_000}, "evaluation": {"every": 0}},
        {"environment": {"name": "math"}, "reward": {"terms": {"outcome": {"metric": "numeric"}}}},
        {
            "environment": {"name": "code"},
            "reward": {"terms": {"outcome": {"metric": "environment"}}},
        },
        {"environment": {"name": "code"}, "reward": {"terms": {"outcome": {}, "environment": {}}}},
        {
            "environment": {"name": "textworld"},
            "reward": {"environments": {"textworld": {"terms": {"environment": {}}}}},
        },
        {
            "environment": {"name": "math"},
            "tasks": {"sources": {"reasoning_gym": {}}},
            "reward": {"terms": {"outcome": {"metric": "environment"}}},
        },
    ],
)
def test_what_goes_together_is_not_refused(groups) -> None:
    assert found(**groups) == []


def two_groups() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """``rollouts``, ``rewards`` and ``logprobs`` of four trajectories of two tokens."""
    table = rollouts(*(step(f"{task}/{i}", terminated=True) for task in "pq" for i in range(2)))
    scored = rewards(table, p__0=1.0, p__1=0.0, q__0=0.5, q__1=0.25)
    return table, scored, per_token(table, "logprobs", policy_logprobs=[-1.0] * 8, values=[0.1] * 8)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_what_the_registry_says_of_it(name: str) -> None:
    known = ESTIMATORS[name]
    table, scored, logprobs = two_groups()
    estimate = compute_advantages(table, scored, logprobs, {"estimator": name, "whiten": False})
    alone = table.assign(group_id=table["trajectory_id"], task_id=table["trajectory_id"])
    apart = compute_advantages(alone, scored, logprobs, {"estimator": name, "whiten": False})
    silent = all(not any(row) for row in apart["advantages"])
    assert silent == known.compares
    assert estimate["returns"].notna().all() == known.has_returns
    if known.needs_values:
        without = logprobs.assign(values=None)
        with pytest.raises(SchemaError, match="values"):
            compute_advantages(table, scored, without, {"estimator": name})

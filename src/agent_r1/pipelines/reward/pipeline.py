"""Rollouts → rewards."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.reward.nodes import score_rewards


def create_pipeline() -> Pipeline:
    """One reward per step, with its components."""
    return Pipeline(
        [
            Node(
                score_rewards,
                inputs=["rollouts", "tasks", "params:reward"],
                outputs="rewards",
                name="score_rewards",
            )
        ]
    )

"""Rollouts and rewards → preference pairs."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.preferences.nodes import build_preferences


def create_pipeline() -> Pipeline:
    """Preference pairs; an empty table for objectives that do not use them."""
    return Pipeline(
        [
            Node(
                build_preferences,
                inputs=["rollouts", "rewards", "params:update.objective"],
                outputs="preferences",
                name="build_preferences",
            )
        ]
    )

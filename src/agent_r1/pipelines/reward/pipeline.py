"""Rollouts → rewards."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.namespaces import one_node
from agent_r1.pipelines.reward.nodes import score_rewards


def create_pipeline() -> Pipeline:
    """One reward per step, with its components."""
    return one_node(score_rewards, "rollouts tasks params:reward", "rewards")

"""Rollouts and rewards → preference pairs."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.namespaces import one_node
from agent_r1.pipelines.preferences.nodes import build_preferences


def create_pipeline() -> Pipeline:
    """Preference pairs; an empty table for objectives that do not use them."""
    return one_node(build_preferences, "rollouts rewards params:update.objective", "preferences")

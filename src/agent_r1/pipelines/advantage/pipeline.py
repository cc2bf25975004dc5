"""Rewards and values → advantages."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.pipelines.namespaces import one_node


def create_pipeline() -> Pipeline:
    """One advantage per action token, by the configured estimator."""
    inputs = "rollouts rewards logprobs params:advantage previous_controllers"
    return one_node(compute_advantages, inputs, "advantages")

"""Tasks → demonstrations."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.demonstrations.nodes import build_demonstrations


def create_pipeline() -> Pipeline:
    """``demonstrations``: episodes of a scripted agent, with real tool calls."""
    return Pipeline(
        [
            Node(
                build_demonstrations,
                inputs=[
                    "base_policy",
                    "tasks",
                    "documents",
                    "params:demonstrations",
                    "params:environment",
                    "params:chat",
                    "params:rollout",
                    "params:seed",
                ],
                outputs="demonstrations",
                name="build_demonstrations",
            )
        ],
        inputs={"base_policy": "base.policy", "tasks": "tasks", "documents": "documents"},
    )

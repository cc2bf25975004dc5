"""Rewards and values → advantages."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.advantage.nodes import compute_advantages


def create_pipeline() -> Pipeline:
    """One advantage per action token, by the configured estimator."""
    return Pipeline(
        [
            Node(
                compute_advantages,
                inputs=[
                    "rollouts",
                    "rewards",
                    "logprobs",
                    "params:advantage",
                    "previous_controllers",
                ],
                outputs="advantages",
                name="compute_advantages",
            )
        ]
    )

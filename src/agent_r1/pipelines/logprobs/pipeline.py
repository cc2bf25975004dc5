"""Rollouts → log-probs of policy and reference, and values."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.logprobs.nodes import compute_logprobs


def create_pipeline() -> Pipeline:
    """Log-probs of the policy and the reference, and the critic's values, per sampled token."""
    return Pipeline(
        [
            Node(
                compute_logprobs,
                inputs=[
                    "rollouts",
                    "previous_policy",
                    "reference_policy",
                    "previous_critic",
                    "params:logprobs",
                    "params:model",
                ],
                outputs="logprobs",
                name="compute_logprobs",
            )
        ]
    )

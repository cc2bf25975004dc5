"""Rollouts → the trainer's log-probs, the reference's, and values."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.logprobs.nodes import compute_logprobs


def create_pipeline() -> Pipeline:
    """What the policy, the reference policy and the critic say of each sampled token."""
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

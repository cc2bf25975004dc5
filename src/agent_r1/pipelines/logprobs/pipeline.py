"""Rollouts → log-probs of policy and reference, and values."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.logprobs.nodes import compute_logprobs
from agent_r1.pipelines.namespaces import one_node

_INPUTS = "rollouts previous_policy reference_policy previous_critic params:logprobs params:model"


def create_pipeline() -> Pipeline:
    """Log-probs of the policy and the reference, and the critic's values, per sampled token."""
    return one_node(compute_logprobs, _INPUTS, "logprobs")

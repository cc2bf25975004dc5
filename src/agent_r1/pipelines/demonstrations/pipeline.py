"""Tasks → demonstrations."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.demonstrations.nodes import build_demonstrations
from agent_r1.pipelines.namespaces import one_node

_INPUTS = (
    "base_policy tasks documents params:demonstrations params:environment params:chat "
    "params:rollout params:seed"
)


def create_pipeline() -> Pipeline:
    """``demonstrations``: episodes of a scripted agent, with real tool calls."""
    outside = {"base_policy": "base.policy", "tasks": "tasks", "documents": "documents"}
    return Pipeline(one_node(build_demonstrations, _INPUTS, "demonstrations"), inputs=outside)

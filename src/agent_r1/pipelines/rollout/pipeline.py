"""Policy and tasks → rollouts."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.namespaces import one_node
from agent_r1.pipelines.rollout.nodes import generate_rollouts

_INPUTS = (
    "engine previous_policy tasks documents memory params:rollout params:environment params:chat "
    "params:reward params:seed"
)


def create_pipeline(iteration: str) -> Pipeline:
    """Groups of trajectories of the previous iteration's policy."""
    outputs = "rollouts rollout_timings sampled_groups"
    return one_node(generate_rollouts, _INPUTS, outputs, iteration=iteration)

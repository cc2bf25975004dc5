"""Advantages → the next policy."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.namespaces import one_node
from agent_r1.pipelines.update.nodes import update_policy

_INPUTS = (
    "previous_policy reference_policy previous_critic previous_trainer_state previous_controllers "
    "rollouts logprobs advantages preferences params:update params:model params:seed "
    "params:advantage"
)


def create_pipeline(iteration: str) -> Pipeline:
    """The policy of this iteration, and all that the next update needs."""
    outputs = "policy critic trainer_state controllers update_metrics"
    return one_node(update_policy, _INPUTS, outputs, iteration=iteration)

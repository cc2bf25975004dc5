"""A policy → its evaluation on the evaluation splits, and on the validation split."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.evaluation.nodes import evaluate_policy, validate_policy
from agent_r1.pipelines.namespaces import one_node

_INPUTS = (
    "engine policy tasks documents params:evaluation params:rollout params:environment params:chat "
    "params:reward params:seed"
)


def create_evaluation(iteration: str) -> Pipeline:
    """Evaluation on ``evaluation.splits``, which are only reported."""
    outputs = "evaluation evaluation_rollouts evaluation_rewards"
    return one_node(evaluate_policy, _INPUTS, outputs, iteration=iteration)


def create_validation(iteration: str) -> Pipeline:
    """Evaluation on the validation split, for selection and tuning."""
    outputs = "validation validation_rollouts validation_rewards"
    return one_node(validate_policy, _INPUTS, outputs, iteration=iteration)

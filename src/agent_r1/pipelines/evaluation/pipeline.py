"""A policy → its evaluation on the evaluation splits, and on the validation split."""

from __future__ import annotations

from functools import partial, update_wrapper

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.evaluation.nodes import evaluate_policy, validate_policy

_INPUTS = [
    "engine",
    "policy",
    "tasks",
    "documents",
    "params:evaluation",
    "params:rollout",
    "params:environment",
    "params:chat",
    "params:reward",
    "params:seed",
]


def create_evaluation(iteration: str) -> Pipeline:
    """Evaluation on ``evaluation.splits``, which are only reported."""
    evaluate = update_wrapper(partial(evaluate_policy, iteration=iteration), evaluate_policy)
    outputs = ["evaluation", "evaluation_rollouts", "evaluation_rewards"]
    return Pipeline([Node(evaluate, inputs=_INPUTS, outputs=outputs, name="evaluate_policy")])


def create_validation(iteration: str) -> Pipeline:
    """Evaluation on the validation split, for selection and tuning."""
    validate = update_wrapper(partial(validate_policy, iteration=iteration), validate_policy)
    outputs = ["validation", "validation_rollouts", "validation_rewards"]
    return Pipeline([Node(validate, inputs=_INPUTS, outputs=outputs, name="validate_policy")])

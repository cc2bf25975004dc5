"""Advantages → the next policy."""

from __future__ import annotations

from functools import partial, update_wrapper

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.update.nodes import update_policy


def create_pipeline(iteration: str) -> Pipeline:
    """The policy of this iteration, and all that the next update needs."""
    update = update_wrapper(partial(update_policy, iteration=iteration), update_policy)
    return Pipeline(
        [
            Node(
                update,
                inputs=[
                    "previous_policy",
                    "reference_policy",
                    "previous_critic",
                    "previous_trainer_state",
                    "previous_controllers",
                    "rollouts",
                    "logprobs",
                    "advantages",
                    "preferences",
                    "params:update",
                    "params:model",
                    "params:seed",
                    "params:advantage",
                ],
                outputs=["policy", "critic", "trainer_state", "controllers", "update_metrics"],
                name="update_policy",
            )
        ]
    )

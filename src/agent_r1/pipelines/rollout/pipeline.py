"""Policy and tasks → rollouts."""

from __future__ import annotations

from functools import partial, update_wrapper

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.rollout.nodes import generate_rollouts


def create_pipeline(iteration: str) -> Pipeline:
    """Groups of trajectories of the previous iteration's policy."""
    generate = update_wrapper(partial(generate_rollouts, iteration=iteration), generate_rollouts)
    return Pipeline(
        [
            Node(
                generate,
                inputs=[
                    "engine",
                    "previous_policy",
                    "tasks",
                    "documents",
                    "memory",
                    "params:rollout",
                    "params:environment",
                    "params:chat",
                    "params:reward",
                    "params:seed",
                ],
                outputs=["rollouts", "rollout_timings", "sampled_groups"],
                name="generate_rollouts",
            )
        ]
    )

"""One iteration of reinforcement learning, as a modular pipeline.

``iter_00003`` reads the policy of ``iter_00002`` and writes its own. The reference policy is that
of ``iter_00000`` (after SFT) in all of them. A loop is not a DAG, so iterations are instances of
this template, built when they are asked for by name.
"""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.advantage.pipeline import create_pipeline as create_advantage
from agent_r1.pipelines.evaluation.pipeline import create_evaluation, create_validation
from agent_r1.pipelines.logprobs.pipeline import create_pipeline as create_logprobs
from agent_r1.pipelines.namespaces import instance, iteration_name
from agent_r1.pipelines.preferences.pipeline import create_pipeline as create_preferences
from agent_r1.pipelines.reward.pipeline import create_pipeline as create_reward
from agent_r1.pipelines.rollout.pipeline import create_pipeline as create_rollout
from agent_r1.pipelines.update.pipeline import create_pipeline as create_update

SHARED = ("engine", "tasks", "documents", "memory")
"""What all iterations read; not namespaced."""
CARRIED = ("policy", "critic", "trainer_state", "controllers")
"""What an iteration takes over from the one before."""


def create_pipeline(index: int) -> Pipeline:
    """Iteration ``index`` (from 1): rollouts → rewards, log-probs → advantages → update."""
    name = iteration_name(index)
    before = iteration_name(index - 1)
    stages = [
        create_rollout(name),
        create_reward(),
        create_logprobs(),
        create_advantage(),
        create_preferences(),
        create_update(name),
        create_validation(name),
        create_evaluation(name),
    ]
    inputs = {f"previous_{dataset}": f"{before}.{dataset}" for dataset in CARRIED}
    inputs |= {"reference_policy": f"{iteration_name(0)}.policy"}
    inputs |= {dataset: dataset for dataset in SHARED}
    return instance(stages, name, inputs)

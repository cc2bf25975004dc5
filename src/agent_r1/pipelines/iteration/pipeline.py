"""One iteration of reinforcement learning, as a modular pipeline.

``iter_00003`` reads the policy of ``iter_00002`` and writes its own. The reference policy of all
iterations is that of ``iter_00000`` (after SFT). A loop is not a DAG, so each iteration is an
instance of this template, built when its name is requested.
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
"""Datasets that all iterations read; they have no namespace."""
CARRIED = ("policy", "critic", "trainer_state", "controllers")
"""Datasets that an iteration reads from the previous one."""


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

"""Node: evaluate a policy on tasks that it is not trained on."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from agent_r1 import tables
from agent_r1.chat import ChatParameters
from agent_r1.display import progress
from agent_r1.engines.base import Engine
from agent_r1.environments import EnvironmentParameters
from agent_r1.parameters import ParameterError
from agent_r1.pipelines.evaluation.metrics import attempt_outcomes, evaluation_table
from agent_r1.pipelines.evaluation.parameters import EvaluationParameters
from agent_r1.rewards import RewardParameters, rewards_table
from agent_r1.rollout import (
    RolloutParameters,
    TrajectoryRequest,
    check_played,
    group_requests,
    run_trajectories,
)

__all__ = ["EvaluationParameters", "evaluate_policy", "validate_policy"]

STAGE = "evaluate_policy"
_NOT_TEXTS = ("numeric", "coverage")
"""Outcome metrics for which an exact match of texts would be wrong."""


def evaluate_policy(
    engine: Engine,
    policy: Path,
    tasks: pd.DataFrame,
    documents: pd.DataFrame,
    evaluation: EvaluationParameters,
    rollout: RolloutParameters,
    environment: EnvironmentParameters,
    chat: ChatParameters,
    reward: RewardParameters,
    seed: int,
    *,
    iteration: str,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Sampled attempts and one greedy attempt at each task of the chosen splits.

    Args:
        engine: generates the actions; loads the policy's weights.
        policy: folder of the policy to evaluate.
        tasks: the tasks table.
        documents: the corpus that the environment's tools read.
        evaluation: the group ``evaluation``; its ``splits`` are evaluated.
        rollout, environment, chat, reward: the parameter groups of these names.
        seed: the experiment's seed.
        iteration: the iteration of the policy: ``base``, ``iter_00000`` …

    Returns:
        ``evaluation``, ``evaluation_rollouts`` and ``evaluation_rewards``. If there is a greedy
        attempt (temperature 0), it is the last one of each task.

    Raises:
        ParameterError: a parameter cannot be used, a split has no tasks, or all prompts are too
            long.
        BrokenEnvironmentError: the infrastructure failed in every trajectory.
    """
    chosen = evaluated_tasks(tables.conform(tasks, "tasks"), evaluation)
    rollouts, _ = run_trajectories(
        engine,
        policy,
        evaluation_requests(chosen, evaluation, rollout, seed, iteration),
        documents,
        rollout,
        environment,
        chat,
        progress.reporter(),
    )
    check_played(rollouts, rollout)
    rewards = rewards_table(rollouts, chosen, reward)
    by_reward = {
        name for name in set(chosen["environment"]) if reward.outcome_metric(name) in _NOT_TEXTS
    }
    attempts = attempt_outcomes(rollouts, rewards, chosen, evaluation.samples, by_reward)
    return evaluation_table(attempts), rollouts, rewards


def validate_policy(
    engine: Engine,
    policy: Path,
    tasks: pd.DataFrame,
    documents: pd.DataFrame,
    evaluation: EvaluationParameters,
    rollout: RolloutParameters,
    environment: EnvironmentParameters,
    chat: ChatParameters,
    reward: RewardParameters,
    seed: int,
    *,
    iteration: str,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """`evaluate_policy` on only the validation split."""
    return evaluate_policy(
        engine,
        policy,
        tasks,
        documents,
        evaluation.model_copy(update={"splits": ("validation",)}),
        rollout,
        environment,
        chat,
        reward,
        seed,
        iteration=iteration,
    )


def evaluation_requests(
    chosen: pd.DataFrame,
    evaluation: EvaluationParameters,
    rollout: RolloutParameters,
    seed: int,
    iteration: str,
) -> list[TrajectoryRequest]:
    """The attempts of `evaluate_policy` at the tasks of `evaluated_tasks`; replay uses it too."""
    temperatures = [rollout.temperature] * evaluation.samples + [0.0] * evaluation.greedy
    return group_requests(chosen, iteration, temperatures, seed, STAGE)


def evaluated_tasks(tasks: pd.DataFrame, evaluation: EvaluationParameters) -> pd.DataFrame:
    """The evaluated tasks of each split: one of each family in turn, in table order.

    Nothing is random, so every policy of every experiment gets the same tasks.

    Raises:
        ParameterError: a split has no tasks.
    """
    chosen = []
    for split in evaluation.splits:
        of_split = tasks[tasks["split"] == split]
        if of_split.empty:
            raise ParameterError(
                f"evaluation.splits names '{split}', which has no tasks; splits with tasks: "
                f"{', '.join(sorted(set(tasks['split'])))}"
            )
        rank = of_split.groupby("family").cumcount()
        in_turn = of_split.assign(rank=rank).sort_values(["rank", "family"], kind="stable")
        chosen.append(in_turn.drop(columns="rank").head(evaluation.limit(split)))
    return pd.concat(chosen, ignore_index=True)

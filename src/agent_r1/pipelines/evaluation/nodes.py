"""Evaluate a policy: let it attempt tasks that it is not trained on, and count."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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

__all__ = ["EvaluationParameters", "evaluate_policy"]

STAGE = "evaluate_policy"
_NOT_TEXTS = ("numeric", "coverage")
"""Metrics of the outcome that an exact match of texts would contradict."""


def evaluate_policy(
    engine: Engine,
    policy: Path,
    tasks: pd.DataFrame,
    documents: pd.DataFrame,
    evaluation: EvaluationParameters | Mapping[str, Any],
    rollout: RolloutParameters | Mapping[str, Any],
    environment: EnvironmentParameters | Mapping[str, Any],
    chat: ChatParameters | Mapping[str, Any],
    reward: RewardParameters | Mapping[str, Any],
    seed: int,
    *,
    iteration: str,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Sampled attempts and a greedy one at each task of the chosen splits.

    Args:
        engine: generates; it is given the policy's weights.
        policy: the folder of the policy that is evaluated.
        tasks: the tasks table.
        documents: the corpus that the environment's tools work on.
        evaluation: its ``splits`` are evaluated; the driver says which.
        rollout, environment, chat, reward: the parameter groups of these names.
        seed: the experiment's.
        iteration: whose policy it is: ``base``, ``iter_00000`` …

    Returns:
        ``evaluation``, ``evaluation_rollouts`` and ``evaluation_rewards``. Of a task's attempts
        the last one is the greedy one (temperature 0), if there is any.

    Raises:
        ParameterError: a parameter cannot be used, a split has no tasks, or all prompts are too
            long.
        BrokenEnvironmentError: the infrastructure failed in every trajectory.
    """
    evaluation = EvaluationParameters.read(evaluation, "evaluation")
    rollout = RolloutParameters.read(rollout, "rollout")
    chosen = evaluated_tasks(tables.conform(tasks, "tasks"), evaluation)
    rollouts, _ = run_trajectories(
        engine,
        policy,
        evaluation_requests(chosen, evaluation, rollout, seed, iteration),
        documents,
        rollout,
        EnvironmentParameters.read(environment, "environment"),
        ChatParameters.read(chat, "chat"),
        progress.reporter(),
    )
    check_played(rollouts, rollout)
    reward = RewardParameters.read(reward, "reward")
    rewards = rewards_table(rollouts, chosen, reward)
    by_reward = {
        name for name in set(chosen["environment"]) if reward.outcome_metric(name) in _NOT_TEXTS
    }
    attempts = attempt_outcomes(rollouts, rewards, chosen, evaluation.samples, by_reward)
    return evaluation_table(attempts), rollouts, rewards


def evaluation_requests(
    chosen: pd.DataFrame,
    evaluation: EvaluationParameters,
    rollout: RolloutParameters,
    seed: int,
    iteration: str,
) -> list[TrajectoryRequest]:
    """What `evaluate_policy` attempts at the tasks of `evaluated_tasks`; a replay needs it too."""
    temperatures = [rollout.temperature] * evaluation.samples + [0.0] * evaluation.greedy
    return group_requests(chosen, iteration, temperatures, seed, STAGE)


def evaluated_tasks(tasks: pd.DataFrame, evaluation: EvaluationParameters) -> pd.DataFrame:
    """The tasks of each split that are evaluated: families in turn, in table order.

    No draw is involved, so that every policy of every experiment is asked the same.

    Raises:
        ParameterError: a split has no tasks.
    """
    chosen = []
    for split in evaluation.splits:
        of_split = tasks[tasks["split"] == split]
        if of_split.empty:
            raise ParameterError(
                f"evaluation.splits names '{split}', but no task is in it; there are: "
                f"{', '.join(sorted(set(tasks['split'])))}"
            )
        rank = of_split.groupby("family").cumcount()
        in_turn = of_split.assign(rank=rank).sort_values(["rank", "family"], kind="stable")
        chosen.append(in_turn.drop(columns="rank").head(evaluation.limit(split)))
    return pd.concat(chosen, ignore_index=True)

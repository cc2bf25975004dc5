"""Node: generate an iteration's rollouts, groups of trajectories of its policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1 import tables
from agent_r1.chat import ChatParameters
from agent_r1.display import progress
from agent_r1.engines.base import Engine
from agent_r1.environments import EnvironmentParameters
from agent_r1.pipelines.rollout import dynamic_sampling
from agent_r1.rewards import RewardParameters, rewards_table
from agent_r1.rollout import (
    RolloutParameters,
    TrajectoryRequest,
    check_played,
    drawing_order,
    group_requests,
    prepare_run,
    select_tasks,
)
from agent_r1.rollout.run import Run
from agent_r1.tables.trajectories import in_order

STAGE = "generate_rollouts"

RolloutTables = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]


def generate_rollouts(
    engine: Engine,
    policy: Path,
    tasks: pd.DataFrame,
    documents: pd.DataFrame,
    memory: Any,
    rollout: RolloutParameters,
    environment: EnvironmentParameters,
    chat: ChatParameters,
    reward: RewardParameters,
    seed: int,
    *,
    iteration: str,
) -> RolloutTables:
    """``rollout.group_size`` trajectories for each of the iteration's training tasks.

    Args:
        engine: generates the actions; loads the policy's weights.
        policy: folder of the policy that acts.
        tasks: the tasks table; the split ``train`` is played.
        documents: the corpus that the environment's tools read.
        memory: reserved; empty.
        rollout, environment, chat: the parameter groups of these names.
        reward: the group of this name; only dynamic sampling reads it.
        seed: the experiment's seed.
        iteration: such as ``iter_00003``; the first one is ``iter_00001``.

    Returns:
        ``rollouts``, ``rollout_timings`` and ``sampled_groups``. With dynamic sampling, the first
        two hold the kept groups; without it, ``sampled_groups`` is empty.

    Raises:
        ParameterError: a parameter cannot be used, there are too few training tasks, or all
            prompts are too long.
        BrokenEnvironmentError: see there; a trajectory that fails among others is only not scored.
    """
    order = task_order(tasks, rollout, seed, iteration)
    run = prepare_run(
        engine,
        policy,
        documents,
        rollout,
        environment,
        chat,
    )
    if rollout.dynamic_sampling.enabled:
        return _sample_dynamically(run, order, rollout, reward, seed, iteration)
    rollouts, timings = run(_requests(order, rollout, seed, iteration), progress.reporter())
    check_played(rollouts, rollout, outages_are_data=True)
    return rollouts, timings, tables.empty("sampled_groups")


def task_order(
    tasks: pd.DataFrame, rollout: RolloutParameters, seed: int, iteration: str
) -> pd.DataFrame:
    """The tasks of an iteration, in order. With dynamic sampling it plays as many of the first ones
    as it needs, otherwise all.

    Raises:
        ParameterError: there are too few training tasks.
    """
    draw = drawing_order if rollout.dynamic_sampling.enabled else select_tasks
    position = int(iteration.rpartition("_")[2]) - 1
    return draw(tables.conform(tasks, "tasks"), rollout.tasks_per_iteration, position, seed)


def rollout_requests(
    tasks: pd.DataFrame,
    rollout: RolloutParameters,
    seed: int,
    iteration: str,
    sampled_groups: pd.DataFrame | None = None,
) -> list[TrajectoryRequest]:
    """The requests behind the ``rollouts`` of `generate_rollouts`; replay uses it.

    Args:
        tasks, rollout, seed, iteration: the node's inputs of these names.
        sampled_groups: with dynamic sampling, the table of kept and dropped groups.

    Raises:
        ParameterError: there are too few training tasks.
    """
    order = task_order(tasks, rollout, seed, iteration)
    if sampled_groups is not None and rollout.dynamic_sampling.enabled:
        kept = sampled_groups["task_id"][sampled_groups["kept"].astype(bool)]
        order = order.head(len(sampled_groups))
        order = order[order["task_id"].isin(kept)]
    return _requests(order, rollout, seed, iteration)


def _requests(
    tasks: pd.DataFrame, rollout: RolloutParameters, seed: int, iteration: str
) -> list[TrajectoryRequest]:
    temperatures = [rollout.temperature] * rollout.group_size
    return group_requests(tasks, iteration, temperatures, seed, STAGE)


def _sample_dynamically(
    run: Run,
    order: pd.DataFrame,
    rollout: RolloutParameters,
    reward: RewardParameters,
    seed: int,
    iteration: str,
) -> RolloutTables:
    rounds: list[tuple[pd.DataFrame, pd.DataFrame]] = []
    report, played, sampled = progress.reporter(), 0, 0

    def on_progress(done: int, total: int, tokens: int) -> None:
        """Progress over all rounds; the total grows with each round."""
        report(played + done, played + total, sampled + tokens)

    def play(tasks: pd.DataFrame) -> list[dynamic_sampling.GroupOutcome]:
        nonlocal played, sampled
        requests = _requests(tasks, rollout, seed, iteration)
        rollouts, timings = run(requests, on_progress)
        if not rounds:
            check_played(rollouts, rollout, outages_are_data=True)
        rounds.append((rollouts, timings))
        played += len(requests)
        sampled += int(rollouts["completion_tokens"].sum())
        found = dynamic_sampling.group_outcomes(rollouts, rewards_table(rollouts, tasks, reward))
        return [found[task] for task in tasks["task_id"]]

    groups = dynamic_sampling.sample_groups(order, rollout, play)
    dynamic_sampling.warn_if_short(groups, rollout, iteration, len(order))
    kept = {f"{iteration}/{group.task_id}" for group in dynamic_sampling.trained_groups(groups)}
    rollouts = _joined([rollouts for rollouts, _ in rounds], "rollouts", kept)
    timings = _joined([timings for _, timings in rounds], "rollout_timings", kept)
    return rollouts, timings, dynamic_sampling.groups_table(groups, iteration)


def _joined(rounds: list[pd.DataFrame], table: str, kept: set[str]) -> pd.DataFrame:
    """The steps of the kept groups of all rounds, sorted like the tables of one round."""
    steps = pd.concat(rounds, ignore_index=True)
    # A trajectory id is group id / sample index; the timings have no other key.
    group = pd.Series([name.rpartition("/")[0] for name in steps["trajectory_id"]])
    chosen = steps[group.isin(kept)].reset_index(drop=True)
    return in_order(tables.conform(chosen, table), table)

"""Generate an iteration's rollouts: groups of trajectories of the current policy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1 import progress, schemas
from agent_r1.chat import ChatParameters
from agent_r1.engines.base import Engine
from agent_r1.environments import EnvironmentParameters
from agent_r1.mdp import EndReason
from agent_r1.rollout import (
    RolloutParameters,
    TrajectoryRequest,
    group_requests,
    run_trajectories,
    select_tasks,
)

STAGE = "generate_rollouts"


class BrokenEnvironmentError(RuntimeError):
    """The infrastructure failed in every trajectory: there is nothing to train on."""


def generate_rollouts(
    engine: Engine,
    policy: Path,
    tasks: pd.DataFrame,
    documents: pd.DataFrame,
    memory: Any,
    rollout: RolloutParameters | Mapping[str, Any],
    environment: EnvironmentParameters | Mapping[str, Any],
    chat: ChatParameters | Mapping[str, Any],
    seed: int,
    *,
    iteration: str,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """``rollout.group_size`` trajectories for each of the iteration's training tasks.

    Args:
        engine: generates; it is given the policy's weights.
        policy: the folder of the policy that acts.
        tasks: the tasks table; those of the split ``train`` are attempted.
        documents: the corpus that the environment's tools work on.
        memory: reserved, and empty.
        rollout, environment, chat: the parameter groups of these names.
        seed: the experiment's.
        iteration: such as ``iter_00003``; counts from ``iter_00001``.

    Returns:
        ``rollouts`` and ``rollout_timings``.

    Raises:
        ParameterError: a parameter cannot be used, or there are too few training tasks.
        BrokenEnvironmentError: see there; a trajectory that fails among others is only not scored.
    """
    rollout = RolloutParameters.read(rollout, "rollout")
    rollouts, timings = run_trajectories(
        engine,
        policy,
        rollout_requests(tasks, rollout, seed, iteration),
        documents,
        rollout,
        EnvironmentParameters.read(environment, "environment"),
        ChatParameters.read(chat, "chat"),
        progress.reporter(),
    )
    _check_infrastructure(rollouts)
    return rollouts, timings


def rollout_requests(
    tasks: pd.DataFrame, rollout: RolloutParameters, seed: int, iteration: str
) -> list[TrajectoryRequest]:
    """What `generate_rollouts` attempts, from the inputs of these names; a replay needs it too.

    Raises:
        ParameterError: there are too few training tasks.
    """
    chosen = select_tasks(
        schemas.conform(tasks, "tasks"),
        rollout.tasks_per_iteration,
        position=int(iteration.rpartition("_")[2]) - 1,
        seed=seed,
    )
    temperatures = [rollout.temperature] * rollout.group_size
    return group_requests(chosen, iteration, temperatures, seed, STAGE)


def _check_infrastructure(rollouts: pd.DataFrame) -> None:
    last = rollouts[rollouts["end_reason"].notna()]
    if last.empty or (last["end_reason"] != EndReason.INFRASTRUCTURE.value).any():
        return
    first = last.iloc[0]
    failure = json.loads(first["info"]).get("failure", first["info"])
    raise BrokenEnvironmentError(
        f"the environment '{first['environment']}' failed in all {len(last)} trajectories; in "
        f"{first['trajectory_id']}: {failure}"
    )

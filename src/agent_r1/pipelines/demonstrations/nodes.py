"""Node: the episodes of a scripted agent, for the warm start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1 import tables
from agent_r1.chat import ChatParameters
from agent_r1.display import progress
from agent_r1.environments import EnvironmentParameters
from agent_r1.rollout import RolloutParameters, play_demonstrations
from agent_r1.tasks.demonstrations import DemonstrationParameters


def build_demonstrations(
    policy: Path,
    tasks: pd.DataFrame,
    documents: pd.DataFrame,
    demonstrations: DemonstrationParameters | Mapping[str, Any],
    environment: EnvironmentParameters | Mapping[str, Any],
    chat: ChatParameters | Mapping[str, Any],
    rollout: RolloutParameters | Mapping[str, Any],
    seed: int,
) -> pd.DataFrame:
    """Episodes of the scripted agent; the table is empty where ``demonstrations.count`` is 0.

    Arguments and errors are those of `agent_r1.rollout.demonstrations.play_demonstrations`.
    """
    demonstrations = DemonstrationParameters.read(demonstrations, "demonstrations")
    if not demonstrations.count:
        return tables.empty("rollouts")
    return play_demonstrations(
        policy,
        tables.conform(tasks, "tasks"),
        tables.conform(documents, "documents"),
        demonstrations,
        EnvironmentParameters.read(environment, "environment"),
        ChatParameters.read(chat, "chat"),
        RolloutParameters.read(rollout, "rollout"),
        seed,
        progress.reporter(),
    )

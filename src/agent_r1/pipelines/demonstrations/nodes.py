"""Node: play the episodes of a scripted agent, for the warm start."""

from __future__ import annotations

from pathlib import Path

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
    demonstrations: DemonstrationParameters,
    environment: EnvironmentParameters,
    chat: ChatParameters,
    rollout: RolloutParameters,
    seed: int,
) -> pd.DataFrame:
    """Episodes of the scripted agent; an empty table if ``demonstrations.count`` is 0.

    Arguments and errors are those of `agent_r1.rollout.demonstrations.play_demonstrations`.
    """
    if not demonstrations.count:
        return tables.empty("rollouts")
    return play_demonstrations(
        policy,
        tables.conform(tasks, "tasks"),
        tables.conform(documents, "documents"),
        demonstrations,
        environment,
        chat,
        rollout,
        seed,
        progress.reporter(),
    )

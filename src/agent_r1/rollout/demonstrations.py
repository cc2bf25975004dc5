"""Demonstrations: a scripted agent plays training tasks in the same loop as any policy.

`agent_r1.tasks.demonstrations` decides the agent's turns, correct or wrong. This module writes them
in the policy's chat format, and the tools are really called.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1.chat import ChatFormat, ChatParameters, load_tokenizer, make_format
from agent_r1.engines.scripted import ScriptedEngine, ScriptError
from agent_r1.environments import EnvironmentParameters
from agent_r1.rollout.collector import MakeEnvironment, OnProgress, collect
from agent_r1.rollout.parameters import RolloutParameters
from agent_r1.rollout.played import check_played
from agent_r1.rollout.requests import TrajectoryRequest
from agent_r1.rollout.run import environment_factory
from agent_r1.seeding import derive_seed
from agent_r1.tasks.demonstrations import (
    DemonstrationError,
    DemonstrationParameters,
    Encyclopedia,
    choose_tasks,
    training_entities,
    write_script,
)
from agent_r1.tasks.script import Turn

_STAGE = "build_demonstrations"
_TEMPERATURE = 1.0


def play_demonstrations(
    policy: Path,
    tasks: pd.DataFrame,
    documents: pd.DataFrame,
    demonstrations: DemonstrationParameters,
    environment: EnvironmentParameters,
    chat: ChatParameters,
    rollout: RolloutParameters,
    seed: int,
    on_progress: OnProgress | None = None,
) -> pd.DataFrame:
    """Episodes of the scripted agent on training tasks, as a ``rollouts`` table.

    Nothing is sampled: ``action_logprobs`` are 0, ``temperature`` is 1, and ``policy_version`` is
    ``scripted``.

    Args:
        policy: a policy's folder; its tokenizer encodes the turns.
        tasks: the conformed tasks table. The tasks of the split ``train`` are demonstrated.
        documents: the conformed corpus.
        demonstrations, environment, chat, rollout: the parameter groups with these names.
        seed: the experiment's seed.
        on_progress: see `agent_r1.rollout.run.Run`.

    Raises:
        DemonstrationError: a task cannot be demonstrated, or an action needs more tokens than
            ``rollout`` allows.
        ParameterError: all prompts are too long.
        BrokenEnvironmentError: the infrastructure failed in every episode.
    """
    format_ = make_format(chat, load_tokenizer(policy))
    make = environment_factory(environment, documents)
    encyclopedia = Encyclopedia(documents, training_entities(tasks))
    requests, scripts = [], {}
    for task, sample in choose_tasks(tasks, demonstrations.count, seed):
        group = f"demonstrations/{task['task_id']}"
        name = f"{group}/{sample}"
        own_seed = derive_seed(seed, _STAGE, name)
        turns = write_script(task, encyclopedia, demonstrations, own_seed)
        scripts[name] = _render(turns, task, make, format_)
        requests.append(TrajectoryRequest(name, task, group, sample, _TEMPERATURE, own_seed))
    try:
        rollouts, _ = collect(
            ScriptedEngine(scripts), format_, make, requests, rollout, on_progress
        )
    except ScriptError as error:
        raise DemonstrationError(
            f"{error}: increase rollout.max_tokens_per_step ({rollout.max_tokens_per_step}) or "
            f"rollout.max_context_tokens ({rollout.max_context_tokens})"
        ) from error
    check_played(rollouts, rollout)
    return rollouts


def _render(
    turns: list[Turn], task: Mapping[str, Any], make: MakeEnvironment, format_: ChatFormat
) -> list[list[int]]:
    """The token ids of each turn.

    Raises:
        DemonstrationError: the chat format cannot represent a turn.
    """
    tools = make(task).tools
    try:
        return [format_.render_action(turn.action, turn.thought, tools) for turn in turns]
    except ValueError as error:
        raise DemonstrationError(
            f"the script of task '{task['task_id']}': {error}. Choose another chat.format, or skip "
            "demonstrations: set demonstrations.count to 0 and sft.enabled to false"
        ) from error

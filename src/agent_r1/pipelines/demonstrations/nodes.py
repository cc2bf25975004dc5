"""Demonstrations: a scripted agent plays, through the same loop as any policy."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from agent_r1 import tables
from agent_r1.chat import ChatParameters, load_tokenizer, make_format
from agent_r1.display import progress
from agent_r1.engines.scripted import ScriptedEngine, ScriptError
from agent_r1.environments import EnvironmentParameters
from agent_r1.rollout import (
    RolloutParameters,
    TrajectoryRequest,
    check_played,
    collect,
    environment_factory,
)
from agent_r1.seeding import derive_seed
from agent_r1.tasks.demonstrations import (
    DemonstrationError,
    DemonstrationParameters,
    Encyclopedia,
    choose_tasks,
    training_entities,
    write_script,
)

STAGE = "build_demonstrations"

_TEMPERATURE = 1.0


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
    """Episodes of the scripted agent at training tasks, in the schema of rollouts.

    Nothing is sampled: ``action_logprobs`` are 0, the temperature stands as 1, and
    ``policy_version`` is ``scripted``. The tools are really called. See
    `agent_r1.tasks.demonstrations` for what the agent does wrong, and why.

    Args:
        policy: the base policy's folder; its tokenizer writes the turns.
        tasks: the tasks table; those of the split ``train`` are demonstrated.
        documents: the corpus.
        demonstrations, environment, chat, rollout: the parameter groups of these names.
        seed: the experiment's.

    Raises:
        DemonstrationError: a task cannot be demonstrated, or an episode needs more tokens than
            ``rollout`` allows an action.
        ParameterError: all prompts are too long.
        BrokenEnvironmentError: the infrastructure failed in every episode.
    """
    if not demonstrations.count:
        return tables.empty("rollouts")
    tasks, documents = tables.conform(tasks, "tasks"), tables.conform(documents, "documents")
    format_ = make_format(chat, load_tokenizer(policy))
    make = environment_factory(environment, documents)
    encyclopedia = Encyclopedia(documents, training_entities(tasks))
    requests, scripts = [], {}
    for task, sample in choose_tasks(tasks, demonstrations.count, seed):
        group = f"demonstrations/{task['task_id']}"
        name = f"{group}/{sample}"
        own_seed = derive_seed(seed, STAGE, name)
        turns = write_script(task, encyclopedia, demonstrations, own_seed)
        tools = make(task).tools
        try:
            scripts[name] = [format_.render_action(t.action, t.thought, tools) for t in turns]
        except ValueError as error:
            raise DemonstrationError(
                f"the script of task '{task['task_id']}': {error}. Choose another chat.format, or "
                "do without demonstrations: demonstrations.count 0, sft.enabled false"
            ) from error
        requests.append(TrajectoryRequest(name, task, group, sample, _TEMPERATURE, own_seed))
    try:
        rollouts, _ = collect(
            ScriptedEngine(scripts), format_, make, requests, rollout, progress.reporter()
        )
    except ScriptError as error:
        raise DemonstrationError(
            f"{error}: set rollout.max_tokens_per_step ({rollout.max_tokens_per_step}) or "
            f"rollout.max_context_tokens ({rollout.max_context_tokens}) higher"
        ) from error
    check_played(rollouts, rollout)
    return rollouts

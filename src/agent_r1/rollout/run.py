"""The door for stages: a policy folder, tables and parameters in, tables out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from transformers import AutoConfig

from agent_r1.chat import ChatFormat, ChatParameters, load_tokenizer, make_format
from agent_r1.engines.base import Engine
from agent_r1.environments import (
    BaseEnv,
    EnvironmentParameters,
    Resources,
    environment_options,
    make_environment,
)
from agent_r1.parameters import ParameterError
from agent_r1.rollout.collector import (
    MakeEnvironment,
    OnProgress,
    StaleWeightsError,
    collect,
)
from agent_r1.rollout.parameters import RolloutParameters
from agent_r1.rollout.requests import TrajectoryRequest
from agent_r1.storage.hashing import folder_sha256
from agent_r1.tools.mcp import connect

Run = Callable[[Sequence[TrajectoryRequest], OnProgress | None], tuple[pd.DataFrame, pd.DataFrame]]
"""Requests → the tables ``rollouts`` and ``rollout_timings``, sorted by (trajectory_id,
step_index). The callback is called with (ended trajectories, all trajectories, tokens sampled)."""


def environment_factory(
    parameters: EnvironmentParameters, documents: pd.DataFrame
) -> MakeEnvironment:
    """Makes the environment that each task names, over a corpus that all of them share.

    ``parameters.options`` are for the environment ``parameters.name``; the tasks of others get what
    ``parameters.others`` says, or the defaults of those.

    Raises:
        ParameterError: the environment or one of its options is unknown, or an MCP server among
            them does not start.
        MissingExtraError: a package that an environment or MCP needs is not installed.
        SchemaError: ``documents`` does not fit its schema.
    """
    connect_servers(parameters)  # now: a server that does not start is no fault of a trajectory
    options = environment_options(parameters)
    resources = Resources(documents)

    def make(task: Mapping[str, Any]) -> BaseEnv:
        name = task["environment"]
        return make_environment(name, task, resources, options.get(name))

    return make


def connect_servers(parameters: EnvironmentParameters) -> None:
    """Start the MCP servers of all environments; one that runs already is left alone.

    Raises:
        ParameterError: one does not start, or has not the tools that are named.
    """
    for options in environment_options(parameters).values():
        for name, server in options.mcp.items():
            connect(name, server)


def run_trajectories(
    engine: Engine,
    policy: Path,
    requests: Sequence[TrajectoryRequest],
    documents: pd.DataFrame,
    rollout: RolloutParameters,
    environment: EnvironmentParameters,
    chat: ChatParameters,
    on_progress: OnProgress | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run trajectories of a policy once; see `prepare_run` for arguments and errors."""
    run = prepare_run(engine, policy, documents, rollout, environment, chat)
    return run(requests, on_progress)


def prepare_run(
    engine: Engine,
    policy: Path,
    documents: pd.DataFrame,
    rollout: RolloutParameters,
    environment: EnvironmentParameters,
    chat: ChatParameters,
) -> Run:
    """Load a policy into the engine, and give what lets it act, as often as is needed.

    Args:
        engine: takes the policy's weights, unless it has them already.
        policy: a Hugging Face folder with a tokenizer; its content's sha256 is its version.
        documents: the corpus; what environments make of it they share over all runs.
        rollout, environment, chat: the parameter groups of these names.

    Raises:
        ParameterError: an environment, option or tokenizer that does not exist, or a context that
            is longer than what the policy was built for.
        StaleWeightsError: the engine did not take the policy.
    """
    make = environment_factory(environment, documents)
    format_ = check_policy(policy, rollout, chat)
    version = folder_sha256(policy)
    engine.load(Path(policy), version)
    if engine.weight_version != version:
        raise StaleWeightsError(
            f"the engine holds '{engine.weight_version}' after loading policy '{version}'"
        )

    def run(
        requests: Sequence[TrajectoryRequest], on_progress: OnProgress | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        return collect(engine, format_, make, requests, rollout, on_progress)

    return run


def check_policy(policy: Path, rollout: RolloutParameters, chat: ChatParameters) -> ChatFormat:
    """How a policy writes its turns, if it can; reads its tokenizer and config, and no weights.

    Raises:
        ParameterError: it has no tokenizer, or the context is longer than what it was built for.
        ChatTemplateError: its chat template does not go with ``chat``.
    """
    format_ = make_format(chat, load_tokenizer(policy))
    _check_context(Path(policy), rollout)
    return format_


def _check_context(policy: Path, rollout: RolloutParameters) -> None:
    """Now, and not when the first long trajectory gets there. A folder without a config has no
    model, and is for an engine that needs none."""
    if not (policy / "config.json").is_file():
        return
    # Not from the JSON: GPT-2 has another name for it, and multimodal models have it deeper down.
    config = AutoConfig.from_pretrained(policy, local_files_only=True).get_text_config()
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None and rollout.max_context_tokens > positions:
        raise ParameterError(
            f"rollout.max_context_tokens is {rollout.max_context_tokens}, but the policy was built "
            f"for {positions} positions (max_position_embeddings in its config.json)"
        )

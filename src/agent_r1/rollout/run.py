"""Run trajectories for a stage: policy folder, tables and parameters in, tables out."""

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
    """A function that makes the environment that a task names. All share one corpus.

    ``parameters.options`` are the options of the environment ``parameters.name``. Tasks of another
    environment get its options in ``parameters.others``, or its defaults.

    Raises:
        ParameterError: an environment or one of its options is unknown, or an MCP server does not
            start.
        MissingExtraError: a package that an environment or MCP needs is not installed.
        SchemaError: ``documents`` does not fit its schema.
    """
    connect_servers(parameters)  # now: a server that does not start is not a fault of a trajectory
    options = environment_options(parameters)
    resources = Resources(documents)

    def make(task: Mapping[str, Any]) -> BaseEnv:
        name = task["environment"]
        return make_environment(name, task, resources, options.get(name))

    return make


def connect_servers(parameters: EnvironmentParameters) -> None:
    """Start the MCP servers of all environments that do not run yet.

    Raises:
        ParameterError: a server does not start, or lacks a tool that the options name.
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
    """Run trajectories of a policy once. Arguments and errors are those of `prepare_run`."""
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
    """Load a policy into the engine and return a function that runs trajectories with it, any
    number of times.

    Args:
        engine: loads the policy's weights, unless it has them already.
        policy: a Hugging Face folder with a tokenizer. The sha256 of its content is its version.
        documents: the corpus. Environments of all runs share its index.
        rollout, environment, chat: the parameter groups with these names.

    Raises:
        ParameterError: an environment, an option or the tokenizer does not exist, or the context is
            longer than the policy's maximal length.
        StaleWeightsError: the engine did not load the policy.
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
    """The chat format for a policy. Reads its tokenizer and config, but not its weights.

    Raises:
        ParameterError: the policy has no tokenizer, or the context is longer than its maximal
            length.
        ChatTemplateError: its chat template does not fit ``chat``.
    """
    format_ = make_format(chat, load_tokenizer(policy))
    _check_context(Path(policy), rollout)
    return format_


def _check_context(policy: Path, rollout: RolloutParameters) -> None:
    """Refuse a context that is too long now, not at the first long trajectory. A folder without a
    config has no model and is for an engine that needs none."""
    if not (policy / "config.json").is_file():
        return
    # Not from the JSON: GPT-2 has another name for it, and multimodal models nest it.
    config = AutoConfig.from_pretrained(policy, local_files_only=True).get_text_config()
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None and rollout.max_context_tokens > positions:
        raise ParameterError(
            f"rollout.max_context_tokens is {rollout.max_context_tokens}, but the policy has only "
            f"{positions} positions (max_position_embeddings in its config.json)"
        )

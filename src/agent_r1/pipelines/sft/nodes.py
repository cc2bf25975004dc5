"""Nodes: import the base policy, and fine-tune it on demonstrations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1 import tables
from agent_r1.display import progress
from agent_r1.storage.staging import stage
from agent_r1.training import sft as training
from agent_r1.training.optimizer import write_empty
from agent_r1.training.policy import (
    ModelParameters,
    copy_checkpoint,
    import_model,
    use_threads,
)
from agent_r1.training.sft import SftParameters


def import_policy(model: ModelParameters) -> Path:
    """The base policy: the policy files of ``model.path``, copied to a staged folder.

    Raises:
        ModelFolderError: the folder is missing, has no tokenizer, or holds pickled weights.
    """
    return import_model(model.path, stage("base_policy"))


def train_sft(
    base_policy: Path,
    demonstrations: pd.DataFrame,
    sft: SftParameters,
    model: ModelParameters,
    seed: int,
) -> tuple[Path, Path, Path, dict[str, Any], pd.DataFrame]:
    """The policy that RL starts from, and empty checkpoints for critic and trainer state.

    Returns:
        ``policy`` (the base unchanged if ``sft.enabled`` is false), ``critic`` and
        ``trainer_state`` (empty checkpoints), ``controllers`` (none yet), ``update_metrics``.
    """
    use_threads(model)
    policy = stage("policy")
    if sft.enabled:
        demonstrations = tables.conform(demonstrations, "rollouts")
        metrics = training.train_sft(
            base_policy, demonstrations, sft, model, seed, policy, progress.stepper(sft.steps)
        )
    else:
        copy_checkpoint(base_policy, policy)
        metrics = tables.empty("metrics")
    critic = write_empty(stage("critic"), "no critic")
    trainer_state = write_empty(stage("trainer_state"), "no optimizer step was taken")
    return policy, critic, trainer_state, {}, metrics

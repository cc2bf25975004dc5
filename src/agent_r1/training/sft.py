"""Supervised fine-tuning on demonstrations: cross-entropy on the agent's action tokens.

Demonstrations are rollouts, so training uses exactly their action tokens: no wrong mask can train
on an observation, and the stop token is learned wherever the agent wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import torch
from pydantic import Field
from transformers import PreTrainedModel

from agent_r1.seeding import derive_seed
from agent_r1.training.batching import micro_batches
from agent_r1.training.logprobs import Head, head_of, score
from agent_r1.training.metrics import MetricLog, OnStep
from agent_r1.training.optimizer import (
    OptimizerParameters,
    make_optimizer,
    optimizer_step,
    warmed_up,
)
from agent_r1.training.policy import ModelParameters, load_policy, save_policy
from agent_r1.training.sequences import Sequences, build_sequences


class SftParameters(OptimizerParameters):
    """``sft`` in ``conf/``: the warm start."""

    learning_rate: float = Field(1e-3, gt=0)
    """Step size after the warm-up."""
    warmup_steps: int = Field(10, ge=0)
    """Optimizer steps over which the learning rate rises linearly from 0."""
    eps: float = Field(1e-8, gt=0)
    """Added to the root of the second moment. A small value lets every weight move: the base model
    does not know the task yet."""
    enabled: bool = True
    """False: RL starts from ``model.path`` unchanged."""
    steps: int = Field(80, ge=1)
    """Optimizer steps."""
    batch_size: int = Field(32, ge=1)
    """Demonstrated trajectories per optimizer step."""
    micro_batch_sequences: int = Field(16, ge=1)
    """Sequences per forward and backward pass; affects speed and memory only."""
    schedule: Literal["constant", "linear"] = "constant"
    """``linear``: the learning rate falls linearly, reaching 0 after the last step."""

    def rate(self, step: int) -> float:
        """The learning rate of optimizer step ``step``, from 0."""
        rate = warmed_up(self, step)
        return rate if self.schedule == "constant" else rate * (1 - step / self.steps)


def batch_order(items: int, batch_size: int, seed: int) -> Iterator[np.ndarray]:
    """Endless batches of indices; each epoch has its own seeded permutation.

    The last batch of an epoch may be smaller. No item occurs twice in an epoch.
    """
    epoch = 0
    while True:
        order = np.random.default_rng(derive_seed(seed, "train_sft", epoch)).permutation(items)
        for begin in range(0, items, batch_size):
            yield order[begin : begin + batch_size]
        epoch += 1


def fine_tune(
    model: PreTrainedModel,
    demonstrations: pd.DataFrame,
    parameters: SftParameters,
    seed: int,
    on_step: OnStep | None = None,
) -> pd.DataFrame:
    """Train ``model`` in place; returns the ``metrics`` table.

    Metrics per step: ``loss`` (nats per action token), ``grad_norm`` (before clipping),
    ``learning_rate``, ``tokens`` (action tokens of the batch).

    Args:
        model: any causal language model of transformers.
        demonstrations: conformed ``rollouts`` table, in any row order.
        parameters: see `SftParameters`.
        seed: the experiment's seed; decides the data order.
        on_step: called with each step's number and metrics, for a progress display.

    Raises:
        ValueError: no demonstration has an action token.
    """
    sequences = build_sequences(demonstrations)
    owners = np.unique(sequences.trajectory)
    if not len(owners):
        raise ValueError(
            "the demonstrations hold no action token: set demonstrations.count above 0, or set "
            "sft.enabled to false to start RL without a warm start"
        )
    head, optimizer, log = head_of(model), make_optimizer(model, parameters), MetricLog()
    batches = batch_order(len(owners), parameters.batch_size, seed)
    for step, picked in zip(range(parameters.steps), batches, strict=False):
        chosen = np.flatnonzero(np.isin(sequences.trajectory, owners[picked]))
        loss, tokens = accumulate_cross_entropy(model, head, sequences, chosen, parameters)
        rate = parameters.rate(step)
        norm = optimizer_step(model, optimizer, rate, parameters.max_grad_norm)
        values = {"loss": loss, "grad_norm": norm, "learning_rate": rate, "tokens": tokens}
        log.add(step, **values)
        if on_step is not None:
            on_step(step, values)
    return log.table()


def accumulate_cross_entropy(
    model: PreTrainedModel,
    head: Head | None,
    sequences: Sequences,
    chosen: np.ndarray,
    parameters: SftParameters,
) -> tuple[float, int]:
    """Accumulate the gradient of one batch's token-mean cross-entropy.

    Returns the loss (nats per action token) and the number of action tokens.
    """
    tokens = int(sequences.actions.lengths[chosen].sum())
    total = 0.0
    for batch in micro_batches(sequences, chosen, parameters.micro_batch_sequences):
        # Demonstrations are imitated at temperature 1, whatever temperature is in the table.
        ones = torch.ones(len(batch.targets_N))
        loss = -score(model, head, batch, ones).logprobs_N.sum() / tokens
        loss.backward()
        total += loss.item()
    return total, tokens


def train_sft(
    base: Path,
    demonstrations: pd.DataFrame,
    parameters: SftParameters,
    model: ModelParameters,
    seed: int,
    folder: Path,
    on_step: OnStep | None = None,
) -> pd.DataFrame:
    """Fine-tune the policy in ``base`` and write it to ``folder``; returns the metrics table.

    Raises:
        ValueError: see `fine_tune`.
        ModelFolderError: ``base`` cannot be used as a policy.
    """
    policy = load_policy(base, model.torch_dtype)
    metrics = fine_tune(policy, demonstrations, parameters, seed, on_step)
    save_policy(policy, base, folder)
    return metrics

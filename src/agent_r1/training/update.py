"""The policy-gradient update: one iteration's rollouts become the next policy.

1. All tables are sorted by trajectory and step, so the row order of the input cannot matter.
2. Each epoch is a seeded permutation of the trained trajectories, split evenly into mini-batches of
   whole trajectories; each mini-batch is one optimizer step.
3. The weight of every token's loss follows from the masks of the whole mini-batch
   (`agent_r1.losses.aggregation`); micro-batches only add up gradients.
4. Only tokens whose loss mask is true are run at all, and of those only tokens that can have a
   gradient (``skip_zero_advantages``).

The old log-probs are the trainer's own (``policy_logprobs``), so the ratio is 1 before the first
step. Nothing here draws from a global random state: equal inputs give equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from pydantic import Field, field_validator
from transformers import PreTrainedModel

from agent_r1.losses.aggregation import aggregate, token_weights
from agent_r1.losses.base import LossParameters, ObjectiveInputs
from agent_r1.losses.kl import k3, kl_estimator
from agent_r1.losses.registry import objective
from agent_r1.seeding import derive_seed
from agent_r1.training.batching import MicroBatch, micro_batches
from agent_r1.training.logprobs import Head, head_of, score
from agent_r1.training.metrics import MetricLog
from agent_r1.training.optimizer import (
    OptimizerParameters,
    make_optimizer,
    optimizer_step,
    restore_state,
    save_state,
    warmed_up,
)
from agent_r1.training.policy import ModelParameters, load_policy, save_policy
from agent_r1.training.update_batch import UpdateBatch, health

_SUMS = ("loss", "policy_loss")
_MAXIMA = ("ratio_max", "ratio_max_deviation")
"""Metrics that are summed, or maxima, over a mini-batch; all others are means over its tokens."""

OnStep = Callable[[int, dict[str, float]], None]


class UpdateParameters(OptimizerParameters, LossParameters):
    """``update`` in ``conf/``."""

    epochs: int = Field(1, ge=1)
    """Passes over the iteration's trajectories."""
    mini_batch_trajectories: int = Field(64, ge=1)
    """Whole trajectories per optimizer step, at most; batches are of equal size ± 1."""
    micro_batch_trajectories: int = Field(16, ge=1)
    """Sequences per forward and backward (a trajectory is one sequence as long as its window does
    not move); speed and memory only."""
    skip_zero_advantages: bool = True
    """Do not run tokens whose advantage is 0 when neither KL nor entropy is in the loss: the
    gradient is the same and zero-variance groups cost nothing, but the per-token metrics then say
    nothing about them."""

    @field_validator("objective")
    @classmethod
    def _is_known(cls, name: str) -> str:
        objective(name)
        return name


def train(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    batch: UpdateBatch,
    parameters: UpdateParameters,
    seed: int,
    steps_before: int = 0,
    on_step: OnStep | None = None,
) -> tuple[int, pd.DataFrame]:
    """Update ``model`` in place; returns the optimizer steps taken and the metrics table.

    Metrics per step: ``loss`` (what was minimised), ``policy_loss``, ``entropy`` (nats),
    ``ratio_mean``, ``ratio_max``, ``clip_fraction_low``, ``clip_fraction_high``, ``old_kl`` (k3 of
    this policy against the one before the update) and ``reference_kl`` (k3), before the step, over
    the tokens that were run; ``tokens`` (trained ones) and ``run_tokens``; ``grad_norm`` before
    clipping; ``learning_rate``. Once, at step 0: ``initial_ratio_max_deviation`` (max |ratio - 1|,
    0 but for rounding) and those of `agent_r1.training.update_batch.health`.

    Args:
        model: the policy of the last iteration.
        optimizer: AdamW over its parameters, with its state restored.
        batch: of `prepare`.
        parameters: see `UpdateParameters`.
        seed: decides the order of the trajectories.
        steps_before: optimizer steps taken in earlier iterations, for the warm-up.
        on_step: told each step's number and metrics, for a progress display.
    """
    head, log, step = head_of(model), MetricLog(), 0
    token_trajectory = batch.sequences.action_trajectory
    trained = np.unique(token_trajectory[batch.mask])
    once = health(batch, trained)
    for epoch in range(parameters.epochs):
        order = np.random.default_rng(derive_seed(seed, "epoch", epoch)).permutation(trained)
        parts = -(-len(order) // parameters.mini_batch_trajectories)
        for picked in np.array_split(order, parts) if parts else ():
            values = accumulate(model, head, batch, picked, parameters)
            deviation = values.pop("ratio_max_deviation", 0.0)
            if step == 0:
                once["initial_ratio_max_deviation"] = deviation
            rate = warmed_up(parameters, steps_before + step)
            norm = optimizer_step(model, optimizer, rate, parameters.max_grad_norm)
            values |= {"grad_norm": norm, "learning_rate": rate}
            log.add(step, **values, **(once if step == 0 else {}))
            if on_step is not None:
                on_step(step, values)
            step += 1
    if step == 0:
        log.add(0, **once)  # nothing was scored: the policy stays as it is
    return step, log.table()


def accumulate(
    model: PreTrainedModel,
    head: Head | None,
    batch: UpdateBatch,
    picked: np.ndarray,
    parameters: UpdateParameters,
) -> dict[str, float]:
    """Add the gradients of one mini-batch (trajectories ``picked``) to the model's.

    Returns the mini-batch's metrics, see `train`; one that has nothing to be computed from (no
    token was run, there is no reference) is left out.
    """
    sequences = batch.sequences
    chosen = np.flatnonzero(np.isin(sequences.trajectory, picked))
    owner = sequences.action_trajectory
    mask = batch.mask & np.isin(owner, picked)
    weights = torch.from_numpy(
        token_weights(mask, owner, parameters.aggregation, parameters.norm_length)
    ).float()
    run = mask
    if parameters.skip_zero_advantages and not (parameters.kl_coef or parameters.entropy_coef):
        run = mask & (batch.advantages.numpy() != 0)
    for parameter in model.parameters():  # nothing to run is a gradient of 0, not of None
        parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    values = dict.fromkeys(_SUMS, 0.0)
    for block in micro_batches(sequences, chosen, parameters.micro_batch_trajectories, run):
        loss, parts = _loss(model, head, block, batch, weights, parameters)
        loss.backward()
        for name, value in parts.items():
            before = values.get(name, 0.0)
            values[name] = max(before, value) if name in _MAXIMA else before + value
    run_tokens = int(run.sum())
    for name in values.keys() - {*_SUMS, *_MAXIMA}:
        values[name] /= run_tokens
    return values | {"tokens": int(mask.sum()), "run_tokens": run_tokens}


def _loss(
    model: PreTrainedModel,
    head: Head | None,
    block: MicroBatch,
    batch: UpdateBatch,
    weights: torch.Tensor,
    parameters: UpdateParameters,
) -> tuple[torch.Tensor, dict[str, float]]:
    """A micro-batch's share of the loss, and its sums (or maxima) for the metrics."""
    actions = block.actions_N
    temperature = torch.from_numpy(batch.sequences.temperature)[actions]
    scores = score(
        model, head, block, temperature, "gradient" if parameters.entropy_coef else "value"
    )
    logprobs = scores.logprobs_N
    old = batch.old_logprobs[actions].to(logprobs.device)
    weight = weights[actions].to(logprobs.device)
    tokens = objective(parameters.objective)(
        ObjectiveInputs(logprobs, old, batch.advantages[actions].to(logprobs.device), weight > 0),
        parameters,
    )
    policy_loss = aggregate(tokens.losses, weight)
    loss = policy_loss
    sums = {
        "policy_loss": policy_loss.item(),
        "entropy": scores.entropy_N.sum().item(),
        "ratio_mean": tokens.ratios.sum().item(),
        "ratio_max": tokens.ratios.max().item(),
        "ratio_max_deviation": (tokens.ratios - 1).abs().max().item(),
        "clip_fraction_low": tokens.clipped_low.sum().item(),
        "clip_fraction_high": tokens.clipped_high.sum().item(),
        "old_kl": k3(logprobs.detach(), old).sum().item(),
    }
    if batch.reference_logprobs is not None:
        reference = batch.reference_logprobs[actions].to(logprobs.device)
        sums["reference_kl"] = k3(logprobs.detach(), reference).sum().item()
        if parameters.kl_coef:
            kl = kl_estimator(parameters.kl_estimator)(logprobs, reference)
            loss = loss + parameters.kl_coef * aggregate(kl, weight)
    if parameters.entropy_coef:
        loss = loss - parameters.entropy_coef * aggregate(scores.entropy_N, weight)
    return loss, {"loss": loss.item(), **sums}


def update_policy(
    policy: Path,
    trainer_state: Path,
    batch: UpdateBatch,
    parameters: UpdateParameters,
    model: ModelParameters,
    seed: int,
    policy_folder: Path,
    state_folder: Path,
    on_step: OnStep | None = None,
) -> pd.DataFrame:
    """Train the policy in ``policy``; writes the next policy and trainer state, returns metrics."""
    trained = load_policy(policy, model.torch_dtype)
    optimizer = make_optimizer(trained, parameters)
    before = restore_state(trained, optimizer, trainer_state)
    taken, metrics = train(trained, optimizer, batch, parameters, seed, before, on_step)
    save_policy(trained, policy, policy_folder)
    save_state(trained, optimizer, before + taken, state_folder)
    return metrics

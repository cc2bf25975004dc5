"""The update: one iteration's rollouts become the next policy, whatever the objective.

1. All tables are sorted by trajectory and step, so the row order of the input cannot matter.
2. The objective says what it trains on (`agent_r1.training.selection`). Each epoch is a seeded
   permutation of that, split evenly into mini-batches of whole trajectories (or pairs); each
   mini-batch is one optimizer step, whose gradient no split can change
   (`agent_r1.training.accumulation`).
3. The policy may stop moving before the last mini-batch (``kl_stop``).

The old log-probs are the trainer's own (``policy_logprobs``), so the ratio is 1 before the first
step. Nothing here draws from a global random state: equal inputs give equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from pydantic import Field, field_validator
from transformers import PreTrainedModel

from agent_r1.losses.registry import objective
from agent_r1.training.accumulation import AccumulationParameters, accumulate
from agent_r1.training.logprobs import head_of
from agent_r1.training.metrics import MetricLog
from agent_r1.training.optimizer import (
    OptimizerParameters,
    make_optimizer,
    optimizer_step,
    restore_state,
    save_state,
    warmed_up,
)
from agent_r1.training.policy import ModelParameters, copy_checkpoint, load_policy, save_policy
from agent_r1.training.selection import mini_batches, select
from agent_r1.training.update_batch import UpdateBatch, health

OnStep = Callable[[int, dict[str, float]], None]


class UpdateParameters(OptimizerParameters, AccumulationParameters):
    """``update`` in ``conf/``."""

    epochs: int = Field(1, ge=1)
    """Passes over the iteration's trajectories."""
    mini_batch_trajectories: int = Field(64, ge=1)
    """Whole trajectories (pairs, if the objective trains on them) per optimizer step, at most;
    batches are of equal size ± 1."""
    kl_stop: float | None = Field(None, gt=0)
    """Nats per token: once the policy is further than this (k3) from the one before the update, no
    further optimizer step is taken; null: all are."""

    @field_validator("objective")
    @classmethod
    def _is_known(cls, name: str) -> str:
        objective(name)
        return name

    @property
    def needs_reference(self) -> bool:
        """Whether the loss cannot be computed without the reference's log-probs."""
        return self.kl_coef > 0 or objective(self.objective).needs_reference


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

    Metrics per step, before it, means over the tokens that were run: ``entropy`` (nats),
    ``ratio_mean``, ``ratio_max``, ``clip_fraction_low``, ``clip_fraction_high``; of this policy
    against the one before the update ``old_kl`` (k3 of KL(policy || old)), ``old_kl_k1`` (its k1,
    the negative k1 of the reverse) and ``reverse_kl`` (k3 of KL(old || policy), which is unbiased
    here: the old policy sampled); ``reference_kl`` (k3). Further ``loss`` (what was minimised),
    ``policy_loss``, what the objective reports; ``tokens`` (trained ones) and ``run_tokens``;
    ``ess`` (effective sample size of the importance weights, a share) and ``importance_capped``;
    ``grad_norm`` before clipping; ``learning_rate``.

    Once, at step 0: ``initial_ratio_max_deviation`` (max |ratio - 1|, 0 but for rounding), those of
    `agent_r1.training.update_batch.health`, ``trained_pairs`` if the objective trains on pairs, and
    ``kl_coef`` if it is not 0. With ``kl_stop``, at the end: ``kl_stopped`` (1 or 0).

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
    chosen = objective(parameters.objective)
    selected = select(batch, chosen)
    once = health(batch, batch.trained) | {"trained_trajectories": len(selected.trained)}
    if chosen.trains_on == "pairs":
        once["trained_pairs"] = len(selected.pairs)
    if parameters.kl_coef:
        once["kl_coef"] = parameters.kl_coef
    size, limit, stopped = parameters.mini_batch_trajectories, parameters.kl_stop, False
    for part, picked in mini_batches(selected, chosen, parameters.epochs, size, seed):
        values = accumulate(model, head, part, picked, parameters)
        deviation = values.pop("ratio_max_deviation", 0.0)
        if limit is not None and values.get("old_kl", 0.0) > limit:
            # Measured before the step, so it is what the steps so far did: this one is not taken.
            stopped = True
            optimizer.zero_grad(set_to_none=True)
            break
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
        log.add(0, **once)  # there was nothing to train on: the policy stays as it is
    if limit is not None:
        log.add(max(step - 1, 0), kl_stopped=stopped)
    return step, log.table()


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
    if taken:
        save_policy(trained, policy, policy_folder)
        save_state(trained, optimizer, before + taken, state_folder)
    else:  # the same bytes; and a state before the first step has no moments to be saved
        copy_checkpoint(policy, policy_folder)
        copy_checkpoint(trainer_state, state_folder)
    return metrics

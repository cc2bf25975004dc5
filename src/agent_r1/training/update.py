"""The update: one iteration's rollouts become the next policy, whatever the objective.

1. All tables are sorted by trajectory and step, so the row order of the input cannot matter.
2. The objective says what it trains on (`agent_r1.training.selection`). Each epoch is a seeded
   permutation of that, split evenly into mini-batches of whole trajectories (or pairs); each
   mini-batch is one optimizer step, whose gradient no split can change
   (`agent_r1.training.accumulation`).
3. The policy may stop moving before the last mini-batch (``kl_stop``).
4. A critic on the policy's hidden states learns in the same steps. One with its own backbone is
   trained after the policy, in mini-batches of the same order (`agent_r1.training.critic_update`);
   so is any critic in its first ``warmup_iterations`` updates, in which the policy stays as it is.

The old log-probs are the trainer's own (``policy_logprobs``), so the ratio is 1 before the first
step. Nothing here draws from a global random state: equal inputs give equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from pydantic import Field, field_validator, model_validator

from agent_r1.losses.registry import objective
from agent_r1.parameters import ParameterError
from agent_r1.training.accumulation import AccumulationParameters, accumulate
from agent_r1.training.batching import check_packing
from agent_r1.training.critic import CriticState, restore_critic, save_critic
from agent_r1.training.critic_update import critic_step, train_critic
from agent_r1.training.logprobs import head_of
from agent_r1.training.metrics import MetricLog, OnStep
from agent_r1.training.optimizer import GRADIENTS, OptimizerParameters, save_gradients, warmed_up
from agent_r1.training.policy import ModelParameters, copy_checkpoint, load_policy
from agent_r1.training.selection import mini_batches, select
from agent_r1.training.strategies import StrategyParameters, TrainerStrategy, make_strategy
from agent_r1.training.update_batch import UpdateBatch, health

OnGradients = Callable[[dict[str, torch.Tensor]], None]


class UpdateParameters(StrategyParameters, AccumulationParameters):
    """``update`` in ``conf/``."""

    epochs: int = Field(1, ge=1)
    """Passes over the iteration's trajectories."""
    mini_batch_trajectories: int = Field(64, ge=1)
    """Whole trajectories (pairs, if the objective trains on them) per optimizer step, at most;
    batches are of equal size ± 1."""
    kl_stop: float | None = Field(None, gt=0)
    """Nats per token: once the policy is further than this (k3) from the one before the update, no
    further optimizer step is taken; null: all are."""
    keep_gradients: bool = False
    """Write the policy's gradient of the first optimizer step, before it is clipped, beside the
    trainer state: to compare two ways of computing the same update. It is as large as the policy in
    float32."""

    @field_validator("objective")
    @classmethod
    def _is_known(cls, name: str) -> str:
        objective(name)
        return name

    @model_validator(mode="after")
    def _a_shared_critic_sees_what_it_learns_from(self) -> UpdateParameters:
        trained = objective(self.objective).trains_on
        if self.critic.backbone == "shared" and trained != "advantages":
            raise ParameterError(
                f"objective '{self.objective}' trains on {trained}, so a critic on the policy's "
                "hidden states would not see the other trajectories: set critic.backbone to own or "
                "none"
            )
        return self

    @property
    def critic_adamw(self) -> OptimizerParameters:
        """The critic's AdamW: that of the policy but for the learning rate."""
        return self.model_copy(update={"learning_rate": self.critic.learning_rate})

    @property
    def needs_values(self) -> bool:
        """Whether there is a critic to be trained."""
        return self.critic.backbone != "none"

    @property
    def needs_reference(self) -> bool:
        """Whether the loss cannot be computed without the reference's log-probs."""
        return self.kl_coef > 0 or objective(self.objective).needs_reference


def train(
    trainer: TrainerStrategy,
    batch: UpdateBatch,
    parameters: UpdateParameters,
    seed: int,
    on_step: OnStep | None = None,
    critic: CriticState | None = None,
    on_gradients: OnGradients | None = None,
) -> tuple[int, pd.DataFrame]:
    """Update the policy in place; returns the optimizer steps taken and the metrics table.

    Metrics per step, before it, means over the tokens that were run: ``entropy`` (nats),
    ``ratio_mean``, ``ratio_max``, ``clip_fraction_low``, ``clip_fraction_high``; of this policy
    against the one before the update ``old_kl`` (k3 of KL(policy || old)), ``old_kl_k1`` (its k1,
    the negative k1 of the reverse) and ``reverse_kl`` (k3 of KL(old || policy), which is unbiased
    here: the old policy sampled); ``reference_kl`` (k3). Further ``loss`` (what was minimised),
    ``policy_loss``, what the objective reports; ``tokens`` (trained ones) and ``run_tokens``;
    ``ess`` (effective sample size of the importance weights, a share) and ``importance_capped``;
    ``grad_norm`` before clipping; ``learning_rate``.

    Per optimizer step of a critic: ``value_loss`` (half the squared error, squared units of the
    return), ``value_clip_fraction`` (share of its trained tokens) and ``critic_grad_norm`` (before
    clipping; of the head alone if the backbone is shared).

    Once, at step 0: ``initial_ratio_max_deviation`` (max |ratio - 1|, 0 but for rounding), those of
    `agent_r1.training.update_batch.health`, ``trained_pairs`` if the objective trains on pairs, and
    ``kl_coef`` if it is not 0; with a critic ``critic_warmup`` (1 or 0) and those of
    `agent_r1.training.value_targets.ValueTargets.health`. With ``kl_stop``, at the end:
    ``kl_stopped`` (1 or 0).

    Args:
        trainer: holds the policy of the last iteration, and the state of its optimizer.
        batch: of `prepare`.
        parameters: see `UpdateParameters`.
        seed: decides the order of the trajectories.
        on_step: told each step's number and metrics, for a progress display.
        critic: trained in place; None without one.
        on_gradients: told the policy's gradients of the first optimizer step.
    """
    log, taken = MetricLog(), 0
    chosen = objective(parameters.objective)
    selected = select(batch, chosen)
    once = health(batch, batch.trained) | {"trained_trajectories": len(selected.trained)}
    if chosen.trains_on == "pairs":
        once["trained_pairs"] = len(selected.pairs)
    if parameters.kl_coef:
        once["kl_coef"] = parameters.kl_coef
    before = 0 if critic is None else critic.steps
    warming_up = critic is not None and critic.updates < parameters.critic.warmup_iterations
    alone = critic is not None and (warming_up or critic.critic.backbone is not None)
    if critic is not None:
        once["critic_warmup"] = warming_up
    if warming_up:
        log.add(0, **once)
    else:
        with_policy = None if alone else critic
        which = (trainer, with_policy, selected, parameters, seed)
        taken = _train_policy(*which, on_step, on_gradients, log, once)
    if alone:
        told = on_step if warming_up else None
        train_critic(critic, trainer.model, batch, parameters, seed, log, told)
    if critic is not None:
        critic.updates += critic.steps > before
    return taken, log.table()


def _train_policy(
    trainer: TrainerStrategy,
    critic: CriticState | None,
    batch: UpdateBatch,
    parameters: UpdateParameters,
    seed: int,
    on_step: OnStep | None,
    on_gradients: OnGradients | None,
    log: MetricLog,
    once: dict[str, float],
) -> int:
    """The policy's optimizer steps, and those of a critic on its hidden states; how many.

    ``batch`` is of `select`; what is logged ``once`` goes to the first step.
    """
    head, step = head_of(trainer.model), 0
    chosen, critic_model = (
        objective(parameters.objective),
        None if critic is None else critic.critic,
    )
    size, limit, stopped = parameters.mini_batch_trajectories, parameters.kl_stop, False
    for part, picked in mini_batches(batch, chosen, parameters.epochs, size, seed):
        values = accumulate(trainer, head, part, picked, parameters, critic_model)
        deviation = values.pop("ratio_max_deviation", 0.0)
        if limit is not None and values.get("old_kl", 0.0) > limit:
            # Measured before the step, so it is what the steps so far did: this one is not taken.
            stopped = True
            trainer.discard()
            if critic is not None:
                critic.optimizer.zero_grad(set_to_none=True)
            break
        if step == 0:
            once["initial_ratio_max_deviation"] = deviation
            if on_gradients is not None:
                on_gradients(trainer.gradients())
        rate = warmed_up(parameters, trainer.steps)
        values |= {"grad_norm": trainer.step(rate), "learning_rate": rate}
        if critic is not None:
            values["critic_grad_norm"] = critic_step(critic, parameters)
        log.add(step, **values, **(once if step == 0 else {}))
        if on_step is not None:
            on_step(step, values)
        step += 1
    if step == 0:
        log.add(0, **once)  # there was nothing to train on: the policy stays as it is
    if limit is not None:
        log.add(max(step - 1, 0), kl_stopped=stopped)
    return step


def update_policy(
    policy: Path,
    critic: Path,
    trainer_state: Path,
    batch: UpdateBatch,
    parameters: UpdateParameters,
    model: ModelParameters,
    seed: int,
    policy_folder: Path,
    critic_folder: Path,
    state_folder: Path,
    on_step: OnStep | None = None,
) -> pd.DataFrame:
    """Train the policy in ``policy`` and its critic; writes the next policy, critic and trainer
    state, returns metrics. What took no optimizer step is copied byte for byte."""
    trained = load_policy(policy, model.torch_dtype)
    if parameters.packing:
        check_packing(trained, "update.packing")
    with make_strategy(trained, parameters, trainer_state) as trainer:
        critic_state, steps_before = None, 0
        if parameters.needs_values:
            adamw, dtype = parameters.critic_adamw, model.torch_dtype
            critic_state = restore_critic(critic, trained, parameters.critic, adamw, dtype)
            steps_before = critic_state.steps
        keep = partial(save_gradients, folder=state_folder) if parameters.keep_gradients else None
        taken, metrics = train(trainer, batch, parameters, seed, on_step, critic_state, keep)
        if taken:
            trainer.save(policy, policy_folder, state_folder)
    if not taken:  # the same bytes; and a state before the first step has no moments to be saved
        copy_checkpoint(policy, policy_folder)
        copy_checkpoint(trainer_state, state_folder)
        (state_folder / GRADIENTS).unlink(missing_ok=True)  # an earlier update's
    if critic_state is not None and critic_state.steps > steps_before:
        save_critic(critic_state, critic_folder)
    else:
        copy_checkpoint(critic, critic_folder)
    return metrics

"""The update: one iteration's rollouts become the next policy, whatever the objective.

1. All tables are sorted by trajectory and step, so the row order of the input cannot matter.
2. The objective selects the trajectories or pairs to train on (`agent_r1.training.selection`). Each
   epoch is a seeded permutation of them, split evenly into mini-batches. Each mini-batch is one
   optimizer step, whose gradient is the same for any split (`agent_r1.training.accumulation`).
3. ``kl_stop`` may end the update before the last mini-batch.
4. A critic on the policy's hidden states learns in the same steps. A critic with its own backbone
   is trained after the policy, in mini-batches of the same order
   (`agent_r1.training.critic_update`). So is any critic in its first ``warmup_iterations`` updates,
   in which the policy does not change.

The old log-probs are the trainer's own (``policy_logprobs``), so the ratio is 1 before the first
step. No global random state is used: equal inputs give equal bytes.

Metrics of each optimizer step, measured before the step, as means over the tokens that were run:

- ``entropy`` (nats), ``ratio_mean``, ``ratio_max``, ``clip_fraction_low``, ``clip_fraction_high``;
- against the policy before the update: ``old_kl`` (k3 of KL(policy || old)), ``old_kl_k1`` (its k1,
  the negative k1 of the reverse KL) and ``reverse_kl`` (k3 of KL(old || policy); unbiased here,
  because the old policy sampled);
- against the reference: ``reference_kl`` (k3).

Also per step: ``loss`` (the minimised value), ``policy_loss``, the objective's own metrics,
``tokens`` (trained) and ``run_tokens``, ``ess`` (effective sample size of the importance weights, a
share), ``importance_capped``, ``grad_norm`` (before clipping) and ``learning_rate``. With a critic:
``value_loss`` (half the squared error, squared units of the return), ``value_clip_fraction`` (share
of its trained tokens) and ``critic_grad_norm`` (before clipping; of the head only if the backbone
is shared).

Once, at step 0: ``initial_ratio_max_deviation`` (max |ratio - 1|, 0 up to rounding), the metrics of
`agent_r1.training.update_batch.health`, ``trained_pairs`` if the objective trains on pairs,
``kl_coef`` if it is not 0, and with a critic ``critic_warmup`` (1 or 0) and the metrics of
`agent_r1.training.value_targets.ValueTargets.health`. At the end, with ``kl_stop``: ``kl_stopped``
(1 or 0).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import torch

from agent_r1.losses.registry import objective
from agent_r1.training.accumulation import accumulate
from agent_r1.training.batching import check_packing
from agent_r1.training.critic import CriticState, restore_critic, save_critic
from agent_r1.training.critic_update import critic_step, train_critic
from agent_r1.training.logprobs import head_of
from agent_r1.training.metrics import MetricLog, OnStep
from agent_r1.training.optimizer import GRADIENTS, save_gradients, warmed_up
from agent_r1.training.policy import ModelParameters, copy_checkpoint, load_policy
from agent_r1.training.selection import mini_batches, select
from agent_r1.training.strategies import TrainerStrategy, make_strategy
from agent_r1.training.update_batch import UpdateBatch, health
from agent_r1.training.update_parameters import UpdateParameters

OnGradients = Callable[[dict[str, torch.Tensor]], object]
"""Called with the gradients of the first optimizer step, by parameter."""


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

    Args:
        trainer: holds the policy of the last iteration and its optimizer.
        batch: result of `agent_r1.training.update_batch.prepare`.
        parameters: the group ``update``.
        seed: decides the order of the trajectories.
        on_step: called with each step's number and metrics, for a progress display.
        critic: trained in place; None without one.
        on_gradients: called with the policy's gradients of the first optimizer step.
    """
    log, taken = MetricLog(), 0
    chosen = objective(parameters.objective)
    selected = select(batch, chosen)
    once = health(batch, batch.trained) | {"trained_trajectories": len(selected.trained)}
    if chosen.trains_on == "pairs":
        once["trained_pairs"] = len(selected.pairs)
    if parameters.kl.kl_coef:
        once["kl_coef"] = parameters.kl.kl_coef
    before = 0 if critic is None else critic.steps
    warming_up, separate = False, None
    if critic is not None:
        warming_up = critic.updates < parameters.critic.warmup_iterations
        separate = critic if warming_up or critic.critic.backbone is not None else None
        once["critic_warmup"] = warming_up
    if warming_up:
        log.add(0, **once)
    else:
        shared = critic if separate is None else None
        which = (trainer, shared, selected, parameters, seed)
        taken = _train_policy(*which, on_step, on_gradients, log, once)
    if separate is not None:
        report = on_step if warming_up else None
        train_critic(separate, trainer.model, batch, parameters, seed, log, report)
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
    """Take the optimizer steps of the policy and of a critic on its hidden states; how many.

    ``batch`` is the result of `select`; ``once`` holds metrics to log at the first step.
    """
    head, step = head_of(trainer.model), 0
    chosen = objective(parameters.objective)
    critic_model = None if critic is None else critic.critic
    size, limit, stopped = parameters.mini_batch_trajectories, parameters.kl_stop, False
    for part, picked in mini_batches(batch, chosen, parameters.epochs, size, seed):
        values = accumulate(trainer, head, part, picked, parameters, critic_model)
        deviation = values.pop("ratio_max_deviation", 0.0)
        if limit is not None and values.get("old_kl", 0.0) > limit:
            # Measured before the step: the steps so far exceeded the limit, so this one is skipped.
            stopped = True
            trainer.discard()
            if critic is not None:
                critic.optimizer.zero_grad(set_to_none=True)
            break
        if step == 0:
            once["initial_ratio_max_deviation"] = deviation
            if on_gradients is not None:
                on_gradients(trainer.gradients())
        rate = warmed_up(parameters.optimizer, trainer.steps)
        values |= {"grad_norm": trainer.step(rate), "learning_rate": rate}
        if critic is not None:
            values["critic_grad_norm"] = critic_step(critic, parameters)
        log.add(step, **values, **(once if step == 0 else {}))
        if on_step is not None:
            on_step(step, values)
        step += 1
    if step == 0:
        log.add(0, **once)  # nothing to train on: the policy does not change
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
    """Train the policy in ``policy`` and its critic; returns the metrics table.

    Writes the next policy, critic and trainer state. If no optimizer step is taken, they are copied
    byte for byte.
    """
    trained = load_policy(policy, model.torch_dtype)
    if parameters.packing:
        check_packing(trained, "update.packing")
    with make_strategy(trained, parameters.trainer, parameters.optimizer, trainer_state) as trainer:
        critic_state, steps_before = None, 0
        if parameters.needs_values:
            adamw, dtype = parameters.critic_adamw, model.torch_dtype
            critic_state = restore_critic(critic, trained, parameters.critic, adamw, dtype)
            steps_before = critic_state.steps
        keep = partial(save_gradients, folder=state_folder) if parameters.keep_gradients else None
        taken, metrics = train(trainer, batch, parameters, seed, on_step, critic_state, keep)
        if taken:
            trainer.save(policy, policy_folder, state_folder)
    if not taken:  # the same bytes; a state before the first step has no moments to save
        copy_checkpoint(policy, policy_folder)
        copy_checkpoint(trainer_state, state_folder)
        (state_folder / GRADIENTS).unlink(missing_ok=True)  # of an earlier update
    if critic_state is not None and critic_state.steps > steps_before:
        save_critic(critic_state, critic_folder)
    else:
        copy_checkpoint(critic, critic_folder)
    return metrics

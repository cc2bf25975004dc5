"""Train a critic separately: a critic with its own backbone, or any critic in its warm-up.

The mini-batches are those of the policy, in the same order and with the same micro-batches. The
loss is `agent_r1.training.value_step`. The policy is not changed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from transformers import PreTrainedModel

from agent_r1.training.batching import micro_batches
from agent_r1.training.critic import Critic, CriticState
from agent_r1.training.metrics import MetricLog, Totals
from agent_r1.training.optimizer import ensure_gradients, optimizer_step, warmed_up
from agent_r1.training.selection import permuted
from agent_r1.training.update_batch import UpdateBatch
from agent_r1.training.update_parameters import UpdateParameters
from agent_r1.training.value_step import ValueStep


def train_critic(
    state: CriticState,
    policy: PreTrainedModel,
    batch: UpdateBatch,
    parameters: UpdateParameters,
    seed: int,
    log: MetricLog,
    on_step: Callable[[int, dict[str, float]], None] | None = None,
) -> None:
    """Train the critic in place on the batch's targets; metrics go to ``log``.

    Args:
        state: the critic and its optimizer.
        policy: a critic without a backbone uses its decoder.
        batch: result of `agent_r1.training.update_batch.prepare`, with targets.
        parameters: the group ``update``, with ``critic``.
        seed: decides the order of the trajectories.
        log: receives the metrics, see `agent_r1.training.update`.
        on_step: called with each step's number and metrics, for a progress display.
    """
    passes = permuted(
        batch.trained, parameters.critic.epochs, parameters.mini_batch_trajectories, seed
    )
    for step, picked in enumerate(passes):
        values = accumulate_values(state.critic, policy, batch, picked, parameters)
        values["critic_grad_norm"] = critic_step(state, parameters)
        log.add(step, **values)
        if on_step is not None:
            on_step(step, values)


def accumulate_values(
    critic: Critic,
    policy: PreTrainedModel,
    batch: UpdateBatch,
    picked: np.ndarray,
    parameters: UpdateParameters,
) -> dict[str, float]:
    """Accumulate the critic's gradients of one mini-batch (trajectories ``picked``).

    Returns the mini-batch's metrics.
    """
    ensure_gradients(critic)
    step = ValueStep.of(batch, picked, parameters.loss, parameters.critic.value_clip)
    chosen = np.flatnonzero(np.isin(batch.sequences.trajectory, picked))
    size, packing = parameters.micro_batch_trajectories, parameters.packing
    totals = Totals()
    totals.sums(value_loss=0.0, value_clip_fraction=0.0)
    for block in micro_batches(batch.sequences, chosen, size, step.mask, packing):
        values_N = critic(critic.states(policy, block))
        step.loss(values_N, block.actions_N, totals).backward()
    return totals.values(1)


def critic_step(state: CriticState, parameters: UpdateParameters) -> float:
    """Take one optimizer step; returns the gradient's L2 norm before clipping.

    Raises:
        FloatingPointError: the gradient is not finite; no weight was changed.
    """
    rate = warmed_up(parameters.critic_adamw, state.steps)
    norm = optimizer_step(state.critic, state.optimizer, rate, parameters.optimizer.max_grad_norm)
    state.steps += 1
    return norm

"""The gradient of one optimizer step, accumulated over micro-batches; it is the same for any split.

1. The weight of every token's loss follows from the masks of the whole mini-batch
   (`agent_r1.losses.aggregation`); micro-batches only add up gradients.
2. The model runs only on tokens whose loss mask is true, and of these only on tokens that can have
   a gradient (``skip_zero_advantages``).
3. Some objectives couple tokens: the ratio of a sequence, the margin of a pair. If micro-batches
   split coupled tokens, a first pass computes the log-probs of the whole mini-batch without a
   gradient, and the objective's derivative with respect to each of them. A second pass
   backpropagates these derivatives through the model. By the chain rule the gradient is exact; the
   price is one more forward pass (L. Gao et al., "Scaling Deep Contrastive Learning Batch Size
   under Memory Limited Setup" (2021), https://arxiv.org/abs/2101.06983, sec. 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel

from agent_r1.kl.estimators import k1, k3, kl_estimator
from agent_r1.losses.aggregation import aggregate, token_weights
from agent_r1.losses.base import Objective, ObjectiveInputs
from agent_r1.losses.importance import Importance, importance
from agent_r1.losses.registry import objective
from agent_r1.training.batching import MicroBatch, micro_batches
from agent_r1.training.critic import Critic
from agent_r1.training.logprobs import Entropy, Head, TokenScores, score
from agent_r1.training.metrics import Totals
from agent_r1.training.optimizer import ensure_gradients
from agent_r1.training.strategies import TrainerStrategy
from agent_r1.training.update_batch import UpdateBatch
from agent_r1.training.update_parameters import UpdateParameters
from agent_r1.training.value_step import ValueStep


def accumulate(
    trainer: TrainerStrategy,
    head: Head | None,
    batch: UpdateBatch,
    picked: np.ndarray,
    parameters: UpdateParameters,
    critic: Critic | None = None,
) -> dict[str, float]:
    """Accumulate the gradients of one mini-batch (trajectories ``picked``) in ``trainer``.

    The loss of a ``critic`` on the model's hidden states is part of the same backward pass, with
    the weight ``value_coef`` (J. Schulman et al., "Proximal Policy Optimization Algorithms" (2017),
    https://arxiv.org/abs/1707.06347, eq. 9).

    Returns the mini-batch's metrics; see `agent_r1.training.update`. A metric without data
    (no token was run, or there is no reference) is left out.
    """
    step = _step(batch, picked, parameters, critic)
    chosen = np.flatnonzero(np.isin(batch.sequences.trajectory, picked))
    size, packing = parameters.micro_batch_trajectories, parameters.packing
    blocks = list(micro_batches(batch.sequences, chosen, size, step.run, packing))
    if critic is not None:
        ensure_gradients(critic)
    totals = Totals()
    totals.sums(loss=0.0, policy_loss=0.0)
    cut = step.is_cut_by(blocks)
    slopes = _slopes(trainer.model, head, step, blocks, totals) if cut else None
    entropy: Entropy = "gradient" if parameters.loss.entropy_coef else "value"

    def loss_of(model: PreTrainedModel, block: MicroBatch) -> torch.Tensor:
        scores = step.score(model, head, block, entropy)
        return step.loss(scores, block.actions_N, slopes, critic, totals)

    trainer.accumulate(blocks, loss_of)
    run = int(step.run.sum())
    values = totals.values(run) | {"tokens": int(step.mask.sum()), "run_tokens": run}
    values["ess"] = step.importance.effective_sample_size
    if step.importance.weights is not None:
        values["importance_capped"] = step.importance.capped
    return values


def _slopes(
    model: PreTrainedModel,
    head: Head | None,
    step: _OptimizerStep,
    blocks: list[MicroBatch],
    totals: Totals,
) -> torch.Tensor:
    """float[action tokens]: derivative of the policy loss with respect to each token's log-prob."""
    with torch.no_grad():
        parts = [step.score(model, head, block, "none").logprobs_N for block in blocks]
    actions = torch.cat([block.actions_N for block in blocks])
    logprobs = torch.cat(parts).requires_grad_()
    (gradient,) = torch.autograd.grad(step.policy_loss(logprobs, actions, totals), logprobs)
    slopes = logprobs.new_zeros(len(step.mask))
    slopes[actions.to(logprobs.device)] = gradient
    return slopes


def _step(
    batch: UpdateBatch,
    picked: np.ndarray,
    parameters: UpdateParameters,
    critic: Critic | None,
) -> _OptimizerStep:
    chosen = objective(parameters.objective)
    owner = batch.sequences.action_trajectory
    sequence = batch.sequences.labels(parameters.loss.sequence)
    mask = batch.mask & np.isin(owner, picked)
    aggregation, length = parameters.loss.aggregation, parameters.loss.norm_length
    weights = torch.from_numpy(token_weights(mask, sequence, aggregation, length)).float()
    of_losses = weights
    if chosen.couples == "pairs":
        of_losses = torch.from_numpy(mask / max(len(batch.pairs), 1)).float()
    old = batch.old_logprobs.numpy()
    run, values = _run(batch, chosen, mask, sequence, parameters), None
    if critic is not None:
        values = ValueStep.of(batch, picked, parameters.loss, parameters.critic.value_clip)
        run = run | values.mask
    return _OptimizerStep(
        batch=batch,
        parameters=parameters,
        objective=chosen,
        mask=mask,
        run=run,
        sequence=torch.from_numpy(sequence),
        trajectory=torch.from_numpy(owner),
        weights=weights,
        loss_weights=of_losses,
        importance=importance(old, batch.sampler_logprobs, mask, sequence, parameters.loss),
        values=values,
    )


def _run(
    batch: UpdateBatch,
    chosen: Objective,
    mask: np.ndarray,
    sequence: np.ndarray,
    parameters: UpdateParameters,
) -> np.ndarray:
    """bool[action tokens]: tokens that can have a gradient, or that such a token depends on."""
    regularised = parameters.kl.kl_coef or parameters.loss.entropy_coef
    weighted = chosen.trains_on == "advantages"
    if not parameters.skip_zero_advantages or regularised or not weighted:
        return mask
    run = mask & (batch.advantages.numpy() != 0)
    if chosen.couples == "sequence":
        run = mask & np.isin(sequence, sequence[run])
    return run


@dataclass(frozen=True)
class _OptimizerStep:
    """A mini-batch; per-token arrays cover the whole table in flat action order."""

    batch: UpdateBatch
    parameters: UpdateParameters
    objective: Objective
    mask: np.ndarray
    """bool: the token is trained in this step."""
    run: np.ndarray
    """bool: the model runs on this token."""
    sequence: torch.Tensor
    trajectory: torch.Tensor
    weights: torch.Tensor
    """float32: of the aggregation; for KL, entropy and all losses except those of pairs."""
    loss_weights: torch.Tensor
    """float32: weights of the objective's losses."""
    importance: Importance
    values: ValueStep | None
    """The value loss; None unless a critic reads the model's hidden states."""

    def is_cut_by(self, blocks: list[MicroBatch]) -> bool:
        """Whether tokens that the objective couples are in different blocks."""
        if self.objective.couples == "token":
            return False
        if self.objective.couples == "pairs":
            return len(blocks) > 1
        labels = [torch.unique(self.sequence[block.actions_N]) for block in blocks]
        return sum(map(len, labels)) > len(torch.unique(torch.cat(labels))) if labels else False

    def score(
        self, model: PreTrainedModel, head: Head | None, block: MicroBatch, entropy: Entropy
    ) -> TokenScores:
        """Log-probs of the block's tokens, each at its sampling temperature."""
        temperature = torch.from_numpy(self.batch.sequences.temperature)[block.actions_N]
        return score(model, head, block, temperature, entropy, self.values is not None)

    def loss(
        self,
        scores: TokenScores,
        actions: torch.Tensor,
        slopes: torch.Tensor | None,
        critic: Critic | None,
        totals: Totals,
    ) -> torch.Tensor:
        """These tokens' share of the whole loss; ``slopes`` are those of `_slopes`, if needed."""
        if slopes is None:
            loss = self.policy_loss(scores.logprobs_N, actions, totals)
        else:
            loss = (slopes[actions] * scores.logprobs_N).sum()
        loss = self.regularised(loss, scores, actions, totals)
        if critic is not None and self.values is not None:
            value_loss = self.values.loss(critic(scores.states_N_D), actions, totals)
            value_loss = self.parameters.critic.value_coef * value_loss
            totals.sums(loss=value_loss.item())
            loss = loss + value_loss
        return loss

    def policy_loss(
        self, logprobs: torch.Tensor, actions: torch.Tensor, totals: Totals
    ) -> torch.Tensor:
        """These tokens' share of the objective; its metrics are added to ``totals``."""
        batch, device = self.batch, logprobs.device
        weight, old = self.loss_weights[actions].to(device), batch.old_logprobs[actions].to(device)
        reference = batch.reference_logprobs
        tokens = self.objective.losses(
            ObjectiveInputs(
                logprobs=logprobs,
                old_logprobs=old,
                advantages=batch.advantages[actions].to(device),
                mask=weight > 0,
                sequence=self.sequence[actions].to(device),
                trajectory=self.trajectory[actions].to(device),
                pairs=torch.from_numpy(batch.pairs).to(device),
                reference_logprobs=None if reference is None else reference[actions].to(device),
            ),
            self.parameters.loss,
        )
        losses = tokens.losses
        if self.importance.weights is not None and self.objective.trains_on == "advantages":
            losses = losses * torch.from_numpy(self.importance.weights)[actions].to(device)
        loss = aggregate(losses, weight)
        detached = logprobs.detach()
        totals.sums(loss=loss.item(), policy_loss=loss.item())
        totals.sums(**{name: aggregate(x, weight).item() for name, x in tokens.reported.items()})
        totals.means(
            ratio_mean=tokens.ratios.sum().item(),
            clip_fraction_low=tokens.clipped_low.sum().item(),
            clip_fraction_high=tokens.clipped_high.sum().item(),
            old_kl=k3(detached, old).sum().item(),
            old_kl_k1=k1(detached, old).sum().item(),
            reverse_kl=k3(old, detached).sum().item(),
        )
        totals.largest(
            ratio_max=tokens.ratios.max().item(),
            ratio_max_deviation=(tokens.ratios - 1).abs().max().item(),
        )
        return loss

    def regularised(
        self, loss: torch.Tensor, scores: TokenScores, actions: torch.Tensor, totals: Totals
    ) -> torch.Tensor:
        """``loss`` plus these tokens' share of the KL, minus their share of the entropy bonus."""
        parameters, logprobs, entropy = self.parameters, scores.logprobs_N, scores.entropy_N
        assert entropy is not None, "accumulate requests it"
        weight = self.weights[actions].to(logprobs.device)
        totals.means(entropy=entropy.sum().item())
        if self.batch.reference_logprobs is not None:
            reference = self.batch.reference_logprobs[actions].to(logprobs.device)
            totals.means(reference_kl=k3(logprobs.detach(), reference).sum().item())
            if parameters.kl.kl_coef:
                estimate = kl_estimator(parameters.loss.kl_estimator)(logprobs, reference)
                kl = parameters.kl.kl_coef * aggregate(estimate, weight)
                totals.sums(loss=kl.item())
                loss = loss + kl
        if parameters.loss.entropy_coef:
            bonus = parameters.loss.entropy_coef * aggregate(entropy, weight)
            totals.sums(loss=-bonus.item())
            loss = loss - bonus
        return loss

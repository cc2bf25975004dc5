"""The value loss of one mini-batch, accumulated over micro-batches like the policy loss.

It covers the trained tokens that have a return: with returns per step, one token of each step.
Their weights come from the aggregation of the policy loss (`agent_r1.losses.aggregation`), computed
over these tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from agent_r1.losses.aggregation import aggregate, token_weights
from agent_r1.losses.base import LossParameters
from agent_r1.losses.value import value_loss
from agent_r1.training.metrics import Totals
from agent_r1.training.update_batch import UpdateBatch
from agent_r1.training.value_targets import ValueTargets


@dataclass(frozen=True)
class ValueStep:
    """A mini-batch; per-token arrays cover the whole table in flat action order."""

    targets: ValueTargets
    mask: np.ndarray
    """bool: the token's value is trained in this step."""
    weights: torch.Tensor
    """float32: weights of the aggregation."""
    clip: float | None

    @classmethod
    def of(
        cls, batch: UpdateBatch, picked: np.ndarray, parameters: LossParameters, clip: float | None
    ) -> ValueStep:
        """The step of the trajectories ``picked``.

        Raises:
            ValueError: the batch was prepared without value targets.
        """
        targets = batch.targets
        if targets is None:
            raise ValueError("the batch has no value targets: prepare it with needs_values=True")
        mask = targets.trained & np.isin(batch.sequences.action_trajectory, picked)
        sequence = batch.sequences.labels(parameters.sequence)
        weights = token_weights(mask, sequence, parameters.aggregation, parameters.norm_length)
        return cls(targets, mask, torch.from_numpy(weights).float(), clip)

    def loss(self, values_N: torch.Tensor, actions_N: torch.Tensor, totals: Totals) -> torch.Tensor:
        """These tokens' share of the value loss; its metrics are added to ``totals``.

        Args:
            values_N: float[N]: of the critic in training; carries the gradient.
            actions_N: int64[N]: flat action indices.
            totals: totals of the mini-batch.
        """
        weight = self.weights[actions_N].to(values_N.device)
        old = self.targets.old_values[actions_N].to(values_N.device)
        returns = self.targets.returns[actions_N].to(values_N.device)
        tokens = value_loss(values_N, old, returns, weight > 0, self.clip)
        loss = aggregate(tokens.losses, weight)
        share = tokens.clipped.sum().item() / max(int(np.count_nonzero(self.mask)), 1)
        totals.sums(value_loss=loss.item(), value_clip_fraction=share)
        return loss

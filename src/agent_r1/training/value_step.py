"""The value loss of one mini-batch, added up over micro-batches as the policy's is.

The tokens that count are those that are trained on and have a return: with returns per step, one
token of each step. Their weights come from the same aggregation as those of the policy
(`agent_r1.losses.aggregation`), over these tokens.
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
    """A mini-batch; per-token arrays are in flat action order, of the whole table."""

    targets: ValueTargets
    mask: np.ndarray
    """bool: the value of this token is trained in this step."""
    weights: torch.Tensor
    """float32: of the aggregation."""
    clip: float | None

    @classmethod
    def of(
        cls, batch: UpdateBatch, picked: np.ndarray, parameters: LossParameters, clip: float | None
    ) -> ValueStep:
        """The step of the trajectories ``picked``; the batch has value targets."""
        mask = batch.targets.trained & np.isin(batch.sequences.action_trajectory, picked)
        sequence = batch.sequences.labels(parameters.sequence)
        weights = token_weights(mask, sequence, parameters.aggregation, parameters.norm_length)
        return cls(batch.targets, mask, torch.from_numpy(weights).float(), clip)

    def loss(self, values_N: torch.Tensor, actions_N: torch.Tensor, totals: Totals) -> torch.Tensor:
        """These tokens' share of the value loss; its metrics are added to ``totals``.

        Args:
            values_N: float[N], of the critic being trained; carries the gradient.
            actions_N: int64[N]: flat action indices.
            totals: of the mini-batch.
        """
        weight = self.weights[actions_N].to(values_N.device)
        old = self.targets.old_values[actions_N].to(values_N.device)
        returns = self.targets.returns[actions_N].to(values_N.device)
        tokens = value_loss(values_N, old, returns, weight > 0, self.clip)
        loss = aggregate(tokens.losses, weight)
        share = tokens.clipped.sum().item() / max(np.count_nonzero(self.mask), 1)
        totals.sums(value_loss=loss.item(), value_clip_fraction=share)
        return loss

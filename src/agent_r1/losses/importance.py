"""Importance weights between who sampled and who trains.

Kernels, dtypes and batch shapes differ, so the sampler's probability of a token is not exactly the
trainer's. With w = trainer / sampler as a constant factor of the loss its gradient is that of the
trainer's own policy again.

- ``token``: a weight per token, truncated in F. Yao et al., "Your Efficient RL Framework Secretly
  Brings You Off-Policy RL Training" (2025).
- ``sequence``: one for all tokens of a sequence, the product of theirs, masked in J. Liu et al.,
  "When Speed Kills Stability" (2025).

Either may be truncated or masked here. Masked tokens still count in the denominators.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agent_r1.losses.base import LossParameters

_LOG_WEIGHT_LIMIT = 20.0
"""exp(20) is above any cap; past it exp only overflows."""


class Importance(NamedTuple):
    """The weights of N tokens and what they cost."""

    weights: np.ndarray | None
    """float32[N]; None without correction."""
    effective_sample_size: float
    """(Σw)² / (n Σw²) in [0, 1], over tokens or sequences: the share of the samples that is left.
    Without correction, what a correction per token without a cap would leave."""
    capped: float
    """Share of the tokens or sequences whose weight was above the cap."""


def importance(
    trainer: np.ndarray,
    sampler: np.ndarray,
    mask: np.ndarray,
    sequence: np.ndarray,
    parameters: LossParameters,
) -> Importance:
    """Weights trainer / sampler of the tokens of ``mask``; 1 elsewhere.

    Args:
        trainer: float[N] nats: the trainer's log-probs, of the policy before the update.
        sampler: float[N] nats: those that the sampler reported.
        mask: bool[N].
        sequence: int64[N], any labels.
        parameters: see `LossParameters`.
    """
    difference = np.where(mask, trainer, 0.0) - np.where(mask, sampler, 0.0)
    log_weights, index = difference[mask], np.arange(np.count_nonzero(mask))
    if parameters.importance_correction == "sequence":
        _, index = np.unique(sequence[mask], return_inverse=True)
        log_weights = np.bincount(index, log_weights)
    weights = np.exp(np.clip(log_weights, -_LOG_WEIGHT_LIMIT, _LOG_WEIGHT_LIMIT))
    if parameters.importance_correction == "none":
        return Importance(None, effective_sample_size(weights), 0.0)
    above = weights > parameters.importance_cap
    weights[above] = parameters.importance_cap if parameters.importance_mode == "truncate" else 0.0
    of_tokens = np.ones(len(mask), np.float32)
    of_tokens[mask] = weights[index]
    share = float(above.mean()) if len(above) else 0.0
    return Importance(of_tokens, effective_sample_size(weights), share)


def effective_sample_size(weights: np.ndarray) -> float:
    """(Σw)² / (n Σw²): 1 for equal weights (or none), 1 / n if one has all, 0 if all are 0.

    A. Kong, "A Note on Importance Sampling using Standardized Weights" (1992).
    """
    if not len(weights):
        return 1.0
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / (len(weights) * squares) if squares else 0.0

"""Importance weights that correct the difference between sampler and trainer.

Kernels, dtypes and batch shapes differ, so the sampler's probability of a token is not exactly the
trainer's. Multiplying the loss by the constant w = trainer / sampler corrects the gradient for that
difference.

- ``token``: one weight per token; F. Yao et al., "Your Efficient RL Framework Secretly Brings You
  Off-Policy RL Training" (2025), truncate it.
- ``sequence``: one weight for all tokens of a sequence, the product of the tokens' weights; J. Liu
  et al., "When Speed Kills Stability" (2025), mask it.

Both can be truncated or masked. Masked tokens still count in the denominators of the loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from agent_r1.losses.base import LossParameters

_LOG_WEIGHT_LIMIT = 20.0
"""exp(20) is above any useful cap; larger exponents only risk overflow."""


class Importance(NamedTuple):
    """The weights of N tokens, and how much they reduce the sample."""

    weights: np.ndarray | None
    """float32[N]; None without a correction."""
    effective_sample_size: float
    """(Σw)² / (n Σw²) in [0, 1], over tokens or sequences: the effective share of the samples.
    Without a correction, the share that an uncapped correction per token would leave."""
    capped: float
    """Share of the tokens or sequences with a weight above the cap."""


def importance(
    trainer: np.ndarray,
    sampler: np.ndarray,
    mask: np.ndarray,
    sequence: np.ndarray,
    parameters: LossParameters,
) -> Importance:
    """Weights trainer / sampler of the tokens in ``mask``; 1 elsewhere.

    Args:
        trainer: float[N] nats: the trainer's log-probs under the policy before the update.
        sampler: float[N] nats: the log-probs that the sampler reported.
        mask: bool[N]: trained tokens.
        sequence: int64[N]: the sequence of each token (any labels).
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
    """(Σw)² / (n Σw²): 1 for equal or no weights, 1 / n if one weight is not 0, 0 if all are 0.

    A. Kong, "A Note on Importance Sampling using Standardized Weights" (1992).
    """
    if not len(weights):
        return 1.0
    squares = float(np.square(weights).sum())
    return float(weights.sum()) ** 2 / (len(weights) * squares) if squares else 0.0

"""From token losses to one number, in a way that no split can change.

Every aggregation is a weighted sum whose weights depend on the mask alone. They are computed once
for all tokens of an optimizer step; micro-batches then add up their share, so the gradient is the
same however the step is split, padded or ordered. A *sequence* is a trajectory, all its action
tokens, or one step of it (``update.sequence``). One that is wholly masked counts neither above nor
below the line.

| name | sum over tokens of | source |
|---|---|---|
| token_mean | 1 / masked-in tokens | DAPO (2025), eq. 12 |
| sequence_mean_token_mean | 1 / (sequences * tokens of its sequence) | GRPO (2024), eq. 3 |
| sequence_mean_token_sum | 1 / sequences | REINFORCE |
| constant_norm | 1 / (sequences * norm_length) | Dr. GRPO (2025), eq. 3 |
"""

from __future__ import annotations

import numpy as np
import torch

from agent_r1.losses.base import Aggregation
from agent_r1.parameters import ParameterError, nearest

_KNOWN = ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant_norm")


def token_weights(
    mask: np.ndarray, sequence: np.ndarray, aggregation: Aggregation, norm_length: int = 1024
) -> np.ndarray:
    """float64[N]: the weight of each token's loss; 0 where masked.

    Args:
        mask: bool[N], true where the token is trained on.
        sequence: int64[N], the sequence of each token (any labels).
        aggregation: one of the names in the module's table.
        norm_length: tokens; the constant of ``constant_norm``.

    Raises:
        ParameterError: the aggregation is unknown.
    """
    if aggregation not in _KNOWN:
        raise ParameterError(f"unknown aggregation '{aggregation}'.{nearest(aggregation, _KNOWN)}")
    if not mask.any():
        return np.zeros(len(mask))
    _, label = np.unique(sequence, return_inverse=True)
    tokens = np.bincount(label, weights=mask)  # per sequence
    count = np.count_nonzero(tokens)
    if aggregation == "token_mean":
        weights = np.full(len(mask), 1 / tokens.sum())
    elif aggregation == "sequence_mean_token_mean":
        weights = 1 / (count * np.maximum(tokens, 1)[label])
    elif aggregation == "sequence_mean_token_sum":
        weights = np.full(len(mask), 1 / count)
    else:
        weights = np.full(len(mask), 1 / (count * norm_length))
    return np.where(mask, weights, 0.0)


def aggregate(losses: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The weighted sum of token losses; whatever stands at weight 0 (NaN too) has no part in it."""
    return torch.where(weights > 0, losses * weights, 0.0).sum()

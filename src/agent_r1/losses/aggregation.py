"""From token losses to one number that does not depend on how the step is split.

Every aggregation is a weighted sum, and the weights depend only on the mask. They are computed once
for all tokens of an optimizer step. Micro-batches add up their shares, so splitting, padding and
order do not change the gradient. A *sequence* is all action tokens of a trajectory, or of one step
(``update.sequence``). A wholly masked sequence counts in neither numerator nor denominator.

| name | weight of a token | source |
|---|---|---|
| token_mean | 1 / trained tokens | DAPO (2025), eq. 12 |
| sequence_mean_token_mean | 1 / (sequences * tokens of its sequence) | GRPO (2024), eq. 3 |
| sequence_mean_token_sum | 1 / sequences | REINFORCE |
| constant_norm | 1 / (sequences * norm_length) | Dr. GRPO (2025), eq. 3 |

DAPO: https://arxiv.org/abs/2503.14476; GRPO: https://arxiv.org/abs/2402.03300; Dr. GRPO:
https://arxiv.org/abs/2503.20783.
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
        mask: bool[N]: whether the token is trained on.
        sequence: int64[N]: the sequence of each token (any labels).
        aggregation: one of the names in the module's table.
        norm_length: the constant of ``constant_norm``, in tokens.

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
    """The weighted sum of token losses; values at weight 0 are ignored, even NaN."""
    return torch.where(weights > 0, losses * weights, 0.0).sum()

"""The ratio of the policy to the policy before the update, per token or per sequence."""

from __future__ import annotations

import torch

_LOG_RATIO_LIMIT = 20.0
"""A ratio of exp(20) is clipped anyway; larger ones can overflow fp32."""


def ratio(logprobs: torch.Tensor, old_logprobs: torch.Tensor) -> torch.Tensor:
    """policy / old policy per token; any shape."""
    return (logprobs - old_logprobs).clamp(-_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT).exp()


def sequence_ratio(
    logprobs: torch.Tensor, old_logprobs: torch.Tensor, mask: torch.Tensor, sequence: torch.Tensor
) -> torch.Tensor:
    """float[N]: (policy / old policy) ** (1 / tokens) of each token's sequence.

    C. Zheng et al., "Group Sequence Policy Optimization" (2025), https://arxiv.org/abs/2507.18071,
    eq. 7: the exponential of the mean log-ratio over the sequence's tokens.

    Args:
        logprobs: float[N] nats; finite where the mask is true.
        old_logprobs: float[N] nats; finite where the mask is true.
        mask: bool[N]: only these tokens count.
        sequence: int64[N]: the sequence of each token (any labels).
    """
    _, index = torch.unique(sequence, return_inverse=True)
    log_ratios = torch.where(mask, logprobs - old_logprobs, 0.0)
    total = sum_by(index, log_ratios)
    tokens = sum_by(index, mask.to(log_ratios.dtype))
    mean = (total / tokens.clamp(min=1)).clamp(-_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT)
    return mean.exp()[index]


def sum_by(index: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """float[labels]: the sum of ``values`` (float[N]) for each label 0, 1, … in ``index``."""
    count = int(index.max()) + 1 if len(index) else 0
    return values.new_zeros(count).index_add(0, index, values)

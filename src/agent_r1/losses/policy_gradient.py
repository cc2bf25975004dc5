"""The clipped surrogate of PPO.

J. Schulman et al., "Proximal Policy Optimization Algorithms" (2017), eq. 7, as a loss:
max(-A r, -A clip(r, 1 - low, 1 + high)) with r = policy / old policy. Separate bounds: Q. Yu et
al., "DAPO" (2025), eq. 10. Dual clip, for A < 0 at most -A c: D. Ye et al., "Mastering Complex
Control in MOBA Games" (2020), eq. 5.
"""

from __future__ import annotations

import torch

from agent_r1.losses.base import LossParameters, ObjectiveInputs, TokenLosses

_LOG_RATIO_LIMIT = 20.0
"""A ratio of exp(20) is clipped anyway; past it fp32 only overflows."""


def ratio(logprobs: torch.Tensor, old_logprobs: torch.Tensor) -> torch.Tensor:
    """policy / old policy per token; any shape."""
    return (logprobs - old_logprobs).clamp(-_LOG_RATIO_LIMIT, _LOG_RATIO_LIMIT).exp()


def ppo_clip(inputs: ObjectiveInputs, parameters: LossParameters) -> TokenLosses:
    """Clipped surrogate per token; 0, with gradient 0, where the mask is false.

    ``clipped_low`` and ``clipped_high`` mark the tokens whose gradient a bound took away.
    """
    # Replaced before the arithmetic: 0 * NaN in a backward pass would be NaN.
    mask = inputs.mask
    advantages = torch.where(mask, inputs.advantages, 0.0)
    ratios = ratio(
        torch.where(mask, inputs.logprobs, 0.0), torch.where(mask, inputs.old_logprobs, 0.0)
    )
    low, high = 1 - parameters.clip_low, 1 + parameters.clip_high
    losses = torch.maximum(-advantages * ratios, -advantages * ratios.clamp(low, high))
    if parameters.dual_clip is not None:
        capped = torch.minimum(losses, -advantages * parameters.dual_clip)
        losses = torch.where(advantages < 0, capped, losses)
    return TokenLosses(
        losses=torch.where(mask, losses, 0.0),
        ratios=ratios.detach(),
        clipped_low=mask & (advantages < 0) & (ratios < low),
        clipped_high=mask & (advantages > 0) & (ratios > high),
    )

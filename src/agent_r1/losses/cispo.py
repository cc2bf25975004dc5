"""CISPO: clip the importance weight, not the update.

A. Chen et al., "MiniMax-M1" (2025), https://arxiv.org/abs/2506.13585, eq. 4 and 5, as a loss:
-sg[clip(r, 1 - low, 1 + high)] A log p with r = policy / old policy and sg the stop-gradient. Every
token keeps its gradient; only its weight is bounded. The bounds are relative to 1; other
implementations use an absolute cap.
"""

from __future__ import annotations

import torch

from agent_r1.losses.base import LossParameters, ObjectiveInputs, TokenLosses
from agent_r1.losses.ratio import ratio


def cispo(inputs: ObjectiveInputs, parameters: LossParameters) -> TokenLosses:
    """Weighted REINFORCE per token; 0, with gradient 0, where the mask is false.

    ``clipped_low`` and ``clipped_high`` mark the tokens whose weight a bound changed.
    """
    mask = inputs.mask
    advantages = torch.where(mask, inputs.advantages, 0.0)
    logprobs = torch.where(mask, inputs.logprobs, 0.0)
    ratios = ratio(logprobs, torch.where(mask, inputs.old_logprobs, 0.0)).detach()
    low, high = 1 - parameters.clip_low, 1 + parameters.clip_high
    return TokenLosses(
        losses=-ratios.clamp(low, high) * advantages * logprobs,
        ratios=ratios,
        clipped_low=mask & (ratios < low),
        clipped_high=mask & (ratios > high),
    )

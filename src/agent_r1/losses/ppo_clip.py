"""PPO's clipped surrogate.

J. Schulman et al., "Proximal Policy Optimization Algorithms" (2017),
https://arxiv.org/abs/1707.06347, eq. 7, as a loss: max(-A r, -A clip(r, 1 - low, 1 + high)) with
r = policy / old policy. Separate bounds: Q. Yu et al., "DAPO" (2025),
https://arxiv.org/abs/2503.14476, eq. 10. Dual clip (for A < 0 the loss is at most -A c): D. Ye et
al., "Mastering Complex Control in MOBA Games" (2020), https://arxiv.org/abs/1912.09729, eq. 5.
"""

from __future__ import annotations

import torch

from agent_r1.losses.base import LossParameters, ObjectiveInputs, TokenLosses
from agent_r1.losses.ratio import ratio


def ppo_clip(inputs: ObjectiveInputs, parameters: LossParameters) -> TokenLosses:
    """Clipped surrogate per token; 0, with gradient 0, where the mask is false.

    ``clipped_low`` and ``clipped_high`` mark the tokens that lost their gradient to a bound of
    eq. 7; the dual clip is not counted.
    """
    # Replaced before the arithmetic: 0 * NaN in a backward pass would be NaN.
    mask = inputs.mask
    ratios = ratio(
        torch.where(mask, inputs.logprobs, 0.0), torch.where(mask, inputs.old_logprobs, 0.0)
    )
    result = clipped_surrogate(ratios, torch.where(mask, inputs.advantages, 0.0), mask, parameters)
    if parameters.dual_clip is None:
        return result
    advantages = torch.where(mask, inputs.advantages, 0.0)
    capped = torch.minimum(result.losses, -advantages * parameters.dual_clip)
    return result._replace(losses=torch.where(advantages < 0, capped, result.losses))


def clipped_surrogate(
    ratios: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor, parameters: LossParameters
) -> TokenLosses:
    """max(-A r, -A clip(r)) for finite ratios (float[N]) and advantages (float[N])."""
    low, high = 1 - parameters.clip_low, 1 + parameters.clip_high
    losses = torch.maximum(-advantages * ratios, -advantages * ratios.clamp(low, high))
    return TokenLosses(
        losses=torch.where(mask, losses, 0.0),
        ratios=ratios.detach(),
        clipped_low=mask & (advantages < 0) & (ratios < low),
        clipped_high=mask & (advantages > 0) & (ratios > high),
    )

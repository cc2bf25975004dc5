"""GSPO: PPO's clipped surrogate with one ratio per sequence.

C. Zheng et al., "Group Sequence Policy Optimization" (2025), https://arxiv.org/abs/2507.18071. The
ratio is s = exp(mean over the sequence's tokens of log policy - log old policy), the loss
max(-A s, -A clip(s, 1 - low, 1 + high)) (eq. 5 to 7).

The code uses the paper's token variant (eq. 13 and 14): every token has the ratio
sg[s] * policy / sg[policy], whose value is s and whose gradient is s times that of its own log-prob
(sg is the stop-gradient). With one advantage and one weight per sequence, value and gradient equal
eq. 5; advantages may also differ between tokens. The paper clips at about 3e-4 and 4e-4, because a
mean log-ratio is small.
"""

from __future__ import annotations

import torch

from agent_r1.losses.base import LossParameters, ObjectiveInputs, TokenLosses
from agent_r1.losses.ppo_clip import clipped_surrogate
from agent_r1.losses.ratio import sequence_ratio


def gspo(inputs: ObjectiveInputs, parameters: LossParameters) -> TokenLosses:
    """Clipped surrogate per token with its sequence's ratio; 0, with gradient 0, where masked.

    ``ratios`` repeats a sequence's ratio over its tokens. The inputs must hold every trained token
    of each sequence.

    Raises:
        ValueError: ``sequence`` is missing.
    """
    mask = inputs.mask
    logprobs = torch.where(mask, inputs.logprobs, 0.0)
    old = torch.where(mask, inputs.old_logprobs, 0.0)
    of_sequence = sequence_ratio(logprobs.detach(), old, mask, inputs.need("sequence"))
    ratios = of_sequence * (logprobs - logprobs.detach()).exp()
    return clipped_surrogate(ratios, torch.where(mask, inputs.advantages, 0.0), mask, parameters)

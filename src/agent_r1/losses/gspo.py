"""GSPO: the clipped surrogate of a ratio that is one for a whole sequence.

C. Zheng et al., "Group Sequence Policy Optimization" (2025). The ratio is
s = exp(mean over the sequence's tokens of log policy - log old policy), and the loss
max(-A s, -A clip(s, 1 - low, 1 + high)) (eq. 5 - 7). It is written here in the paper's token
variant (eq. 13, 14): every token has the ratio sg[s] * policy / sg[policy], whose value is s and
whose gradient is s times that of its own log-prob. With one advantage per sequence and one weight
per sequence this is eq. 5 to the letter, value and gradient; it also allows advantages that differ
from token to token. The paper's bounds are about 3e-4 and 4e-4: a mean log-ratio is small.
"""

from __future__ import annotations

import torch

from agent_r1.losses.base import LossParameters, ObjectiveInputs, TokenLosses
from agent_r1.losses.ppo_clip import clipped_surrogate
from agent_r1.losses.ratio import sequence_ratio


def gspo(inputs: ObjectiveInputs, parameters: LossParameters) -> TokenLosses:
    """Clipped surrogate per token, of its sequence's ratio; 0, with gradient 0, where masked.

    ``ratios`` repeats a sequence's ratio over its tokens. The inputs must hold every trained token
    of each sequence.
    """
    mask = inputs.mask
    logprobs = torch.where(mask, inputs.logprobs, 0.0)
    old = torch.where(mask, inputs.old_logprobs, 0.0)
    of_sequence = sequence_ratio(logprobs.detach(), old, mask, inputs.sequence)
    ratios = of_sequence * (logprobs - logprobs.detach()).exp()
    return clipped_surrogate(ratios, torch.where(mask, inputs.advantages, 0.0), mask, parameters)

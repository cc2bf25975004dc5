"""Rejection-sampling fine-tuning: imitate the best trajectory of each group.

Z. Yuan et al., "Scaling Relationship on Learning Mathematical Reasoning with LLMs" (2023),
https://arxiv.org/abs/2308.01825; H. Dong et al., "RAFT" (2023), https://arxiv.org/abs/2304.06767,
sec. 3.2, for the best of K samples. The loss of a token is -log p at the temperature it was sampled
with.

The advantages select the trajectories, not the table of preferences. The estimator has already
compared the group (without null rewards; groups without variance are 0), and an advantage above 0
means better than expected, not only better than the worst.
"""

from __future__ import annotations

import torch

from agent_r1.losses.base import LossParameters, ObjectiveInputs, TokenLosses
from agent_r1.losses.ratio import ratio


def sft(inputs: ObjectiveInputs, parameters: LossParameters) -> TokenLosses:
    """-log p per token; 0, with gradient 0, where the mask is false. Nothing is clipped."""
    mask = inputs.mask
    logprobs = torch.where(mask, inputs.logprobs, 0.0)
    ratios = ratio(logprobs.detach(), torch.where(mask, inputs.old_logprobs, 0.0))
    never = torch.zeros_like(mask)
    return TokenLosses(-logprobs, ratios, never, never)

"""DPO: raise the likelihood of the preferred trajectory over the rejected one.

R. Rafailov et al., "Direct Preference Optimization" (2023), https://arxiv.org/abs/2305.18290,
eq. 7, as a loss per pair: -log sigmoid(m) with the margin
m = beta * ((log p - log reference)(chosen) - (log p - log reference)(rejected)). Log-probs are
summed over the action tokens of a trajectory; tokens of tool results are not in the sums.
"""

from __future__ import annotations

import torch
from torch.nn.functional import logsigmoid

from agent_r1.losses.base import LossParameters, ObjectiveInputs, TokenLosses
from agent_r1.losses.ratio import ratio, sum_by


def dpo(inputs: ObjectiveInputs, parameters: LossParameters) -> TokenLosses:
    """The loss of each pair, spread over its tokens so that their sum is the loss of the pair.

    Reports ``preference_margin`` (m, nats) and ``preference_accuracy`` (1 where m > 0), spread in
    the same way.

    The inputs must hold every trained token of both trajectories of each pair; each trajectory must
    have at least one.

    Raises:
        ValueError: ``trajectory``, ``pairs`` or ``reference_logprobs`` is missing.
    """
    mask = inputs.mask
    logprobs = torch.where(mask, inputs.logprobs, 0.0)
    reference = torch.where(mask, inputs.need("reference_logprobs"), 0.0)
    trajectories, index = torch.unique(inputs.need("trajectory"), return_inverse=True)
    members = torch.searchsorted(trajectories, inputs.need("pairs"))  # int64[pairs, 2]
    log_ratios = sum_by(index, logprobs - reference)  # of each trajectory
    margins = parameters.beta * (log_ratios[members[:, 0]] - log_ratios[members[:, 1]])
    tokens = sum_by(index, mask.to(logprobs.dtype)).clamp(min=1)

    def spread(of_pairs: torch.Tensor) -> torch.Tensor:
        """float[N]: half of a pair's value per trajectory, divided among its tokens."""
        halves = (of_pairs / 2).repeat_interleave(2)
        of_trajectories = torch.zeros_like(tokens).index_add(0, members.flatten(), halves)
        return torch.where(mask, (of_trajectories / tokens)[index], 0.0)

    never = torch.zeros_like(mask)
    return TokenLosses(
        losses=spread(-logsigmoid(margins)),
        ratios=ratio(logprobs.detach(), torch.where(mask, inputs.old_logprobs, 0.0)),
        clipped_low=never,
        clipped_high=never,
        reported={
            "preference_margin": spread(margins.detach()),
            "preference_accuracy": spread((margins > 0).to(logprobs.dtype)),
        },
    )

"""The loss of a critic, with the clip that OpenAI's PPO has.

Half the squared error max((v - R)², (clip(v, v_old - c, v_old + c) - R)²) / 2: P. Dhariwal et al.,
"OpenAI Baselines" (2017), ``ppo2``; L. Engstrom et al., "Implementation Matters in Deep RL" (2020),
sec. 3, item 1. The larger of the two, so that the clip only ever takes a gradient away that would
have carried the value further from where it was.
"""

from __future__ import annotations

from typing import NamedTuple

import torch


class ValueLosses(NamedTuple):
    """What the values of N tokens cost."""

    losses: torch.Tensor
    """float[N], squared units of the return; 0 where masked."""
    clipped: torch.Tensor
    """bool[N]: the clip took the gradient away."""


def value_loss(
    values: torch.Tensor,
    old_values: torch.Tensor,
    returns: torch.Tensor,
    mask: torch.Tensor,
    clip: float | None,
) -> ValueLosses:
    """Clipped squared error per token; 0, with gradient 0, where the mask is false.

    Args:
        values: float[N], of the critic being trained; carries the gradient.
        old_values: float[N], of the critic before the update.
        returns: float[N], the targets.
        mask: bool[N].
        clip: largest change of a value in one update, in units of the return; None: no bound.
    """
    # Replaced before the arithmetic: 0 * NaN in a backward pass would be NaN.
    values, old, targets = (torch.where(mask, x, 0.0) for x in (values, old_values, returns))
    plain = (values - targets).square()
    if clip is None:
        return ValueLosses(plain / 2, torch.zeros_like(mask))
    bounded = (old + (values - old).clamp(-clip, clip) - targets).square()
    gone = mask & ((values - old).abs() > clip) & (bounded > plain)
    return ValueLosses(torch.maximum(plain, bounded) / 2, gone)

"""The critic's loss, with the value clip of OpenAI's PPO.

max((v - R)², (clip(v, v_old - c, v_old + c) - R)²) / 2, as in P. Dhariwal et al., "OpenAI
Baselines" (2017), ``ppo2``, and L. Engstrom et al., "Implementation Matters in Deep RL" (2020),
https://arxiv.org/abs/2005.12729, sec. 3, item 1. The maximum makes the clip pessimistic: it only
removes gradients that would move a value further from its old one.
"""

from __future__ import annotations

from typing import NamedTuple

import torch


class ValueLosses(NamedTuple):
    """The value losses of N tokens."""

    losses: torch.Tensor
    """float[N], squared units of the return; 0 where masked."""
    clipped: torch.Tensor
    """bool[N]: whether the clip removed the gradient."""


def value_loss(
    values: torch.Tensor,
    old_values: torch.Tensor,
    returns: torch.Tensor,
    mask: torch.Tensor,
    clip: float | None,
) -> ValueLosses:
    """Clipped squared error per token; 0, with gradient 0, where the mask is false.

    Args:
        values: float[N]: of the critic in training; carries the gradient.
        old_values: float[N]: of the critic before the update.
        returns: float[N]: the targets.
        mask: bool[N]: trained tokens.
        clip: largest change of a value in one update, in units of the return; None: no clip.
    """
    # Replaced before the arithmetic: 0 * NaN in a backward pass would be NaN.
    values, old, targets = (torch.where(mask, x, 0.0) for x in (values, old_values, returns))
    plain = (values - targets).square()
    if clip is None:
        return ValueLosses(plain / 2, torch.zeros_like(mask))
    bounded = (old + (values - old).clamp(-clip, clip) - targets).square()
    gone = mask & ((values - old).abs() > clip) & (bounded > plain)
    return ValueLosses(torch.maximum(plain, bounded) / 2, gone)

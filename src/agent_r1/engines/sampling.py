"""Sample the next token of every row of a batch from its logits.

1. The draw of an action's i-th token is a function of (seed, i) and the logits alone. `uniforms` is
   counter-based, so neither the batch nor the order of work can change a draw.
2. The token is the inverse of the cumulative distribution at this uniform, in float64.
3. top-k, top-p and min-p only remove tokens from the draw. The log-prob is always
   ``log_softmax(logits / T)`` over the whole vocabulary. A log-prob that is renormalised after
   top-p would bias the importance ratios, as the trainer does not know the filter.
4. Temperature 0 takes the most probable token. Its log-prob is the one at T = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def _mix(state: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014, 'Fast splittable PRNGs')."""
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))


def uniforms(seeds: np.ndarray, count: int) -> np.ndarray:
    """float64[rows, count] in [0, 1). Column i of a row depends only on (the row's seed, i).

    Args:
        seeds: integer[rows], any 64-bit values. Equal seeds give equal rows.
        count: number of draws per row.
    """
    start = _mix(np.asarray(seeds).astype(np.uint64))[:, None]
    counters = np.arange(1, count + 1, dtype=np.uint64)[None, :]
    return (_mix(start + counters * _GAMMA) >> np.uint64(11)) * 2.0**-53


@dataclass(slots=True)
class Choice:
    """Sampling parameters of each row of a batch. Every tensor is [rows]."""

    temperature: Tensor
    """float32; 0 is greedy."""
    top_p: Tensor
    """float64; 1 keeps all tokens."""
    top_k: Tensor
    """int64; 0 keeps all tokens."""
    min_p: Tensor
    """float64; 0 keeps all tokens."""

    def take(self, rows: Tensor) -> Choice:
        """The parameters of these rows, in this order."""
        return Choice(*(getattr(self, field.name)[rows] for field in fields(self)))

    @staticmethod
    def join(first: Choice, second: Choice) -> Choice:
        """The rows of both, ``first`` first."""
        return Choice(
            *(
                torch.cat([getattr(first, field.name), getattr(second, field.name)])
                for field in fields(Choice)
            )
        )

    @property
    def filtered(self) -> Tensor:
        """bool[rows]: whether a filter may remove tokens from the draw."""
        return (self.top_p < 1) | (self.top_k > 0) | (self.min_p > 0)


def sample(logits_B_V: Tensor, choice: Choice, uniform_B: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one token per row.

    Args:
        logits_B_V: float32, unscaled.
        choice: temperature and filters of each row.
        uniform_B: float64 in [0, 1), one draw per row.

    Returns:
        Token ids int64[rows] and their log-probs float32[rows], ``log_softmax(logits / T)``.
    """
    greedy = choice.temperature == 0
    scale = torch.where(greedy, torch.ones_like(choice.temperature), choice.temperature)
    logprobs_B_V = torch.log_softmax(logits_B_V / scale[:, None], dim=-1)
    weights_B_V = logprobs_B_V.exp().double()
    rows = torch.nonzero(choice.filtered & ~greedy).flatten()
    if len(rows):
        weights_B_V[rows] = _filter(weights_B_V[rows], choice.take(rows))
    cumulative_B_V = weights_B_V.cumsum_(-1)
    total_B = cumulative_B_V[:, -1]
    # Stay below the total despite rounding, so that the draw is never after the last token.
    below = torch.nextafter(total_B, torch.zeros_like(total_B))
    point_B = torch.minimum(uniform_B * total_B, below)
    tokens = torch.searchsorted(cumulative_B_V, point_B[:, None], right=True).squeeze(1)
    if greedy.any():
        tokens = torch.where(greedy, logits_B_V.argmax(-1), tokens)
    return tokens, logprobs_B_V.gather(-1, tokens[:, None]).squeeze(1)


def _filter(weights_B_V: Tensor, choice: Choice) -> Tensor:
    """Set to zero the weights of tokens that top-k, then top-p (of the rest), then min-p remove.

    Ties at a limit are kept in the order of token ids. The most probable token is always kept.
    """
    ordered, index = torch.sort(weights_B_V, dim=-1, descending=True, stable=True)
    rank = torch.arange(ordered.shape[-1], device=ordered.device)[None, :]
    limit = torch.where(choice.top_k > 0, choice.top_k, ordered.shape[-1])[:, None]
    ordered = ordered.masked_fill(rank >= limit, 0.0)
    before = ordered.cumsum(-1) - ordered
    unfiltered = choice.top_p[:, None] >= 1  # rounding of the sum must not remove the tail
    within = (before < choice.top_p[:, None] * ordered.sum(-1, keepdim=True)) | unfiltered
    within &= ordered >= choice.min_p[:, None] * ordered[:, :1]
    within[:, 0] = True
    return torch.zeros_like(weights_B_V).scatter(-1, index, ordered * within)

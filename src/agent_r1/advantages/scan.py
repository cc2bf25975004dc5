"""Discounted sums backwards through many segments at once."""

from __future__ import annotations

import numpy as np

_BLOCK = 4096
"""Segments that are walked together: enough to hide the cost of a NumPy call, and few enough that
the cache holds where each of them stands."""


def discounted_sums(values: np.ndarray, offsets: np.ndarray, discount: float) -> np.ndarray:
    """y[t] = x[t] + discount · y[t + 1] inside each segment, with nothing after its end.

    The same additions in the same order as a loop over every segment, so just as exact; but all
    segments of a block take a step together, from their ends to their beginnings.

    Args:
        values: float64[n].
        offsets: int64[segments + 1]: segment ``i`` is ``values[offsets[i]:offsets[i + 1]]``.
        discount: factor per element.
    """
    sums = values.astype(np.float64)  # a copy
    lengths = np.diff(offsets)
    # Similar lengths together, longest first: those still running are always the first ones.
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    for begin in range(0, len(order), _BLOCK):
        block = order[begin : begin + _BLOCK]
        _walk(sums, offsets[block + 1] - 1, lengths[block], discount)
    return sums


def _walk(sums: np.ndarray, ends: np.ndarray, lengths: np.ndarray, discount: float) -> None:
    """Replace the values of segments by their sums; ``lengths`` falls."""
    # running[k]: segments that have more than k elements.
    running = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
    at, carry = ends, np.zeros(len(ends))
    for count in running.tolist():
        at, carry = at[:count], carry[:count]
        carry *= discount
        carry += sums.take(at)
        sums[at] = carry
        at -= 1

"""Discounted sums from the end of each segment to its start, over many segments at once."""

from __future__ import annotations

import numpy as np

_BLOCK = 4096
"""Segments per block: enough to hide the cost of a NumPy call, few enough that their positions fit
in the cache."""


def discounted_sums(values: np.ndarray, offsets: np.ndarray, discount: float) -> np.ndarray:
    """float64[n]: y[t] = x[t] + discount · y[t + 1] in each segment, with y = 0 after its end.

    The additions are those of a loop over every segment, in the same order, so the result is equal
    bit by bit. All segments of a block step together from their ends to their starts.

    Args:
        values: float64[n].
        offsets: int64[segments + 1]: segment ``i`` is ``values[offsets[i]:offsets[i + 1]]``.
        discount: factor per element.
    """
    sums = values.astype(np.float64)  # a copy
    lengths = np.diff(offsets)
    # Longest first: the segments that are still running are always the first ones.
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    for begin in range(0, len(order), _BLOCK):
        block = order[begin : begin + _BLOCK]
        _walk(sums, offsets[block + 1] - 1, lengths[block], discount)
    return sums


def _walk(sums: np.ndarray, ends: np.ndarray, lengths: np.ndarray, discount: float) -> None:
    """Replace the values of segments by their sums; ``lengths`` must be descending."""
    # running[k]: number of segments with more than k elements.
    running = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
    at, carry = ends, np.zeros(len(ends))
    for count in running.tolist():
        at, carry = at[:count], carry[:count]
        carry *= discount
        carry += sums.take(at)
        sums[at] = carry
        at -= 1

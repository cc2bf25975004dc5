"""Whitening: shift and scale values to mean 0 and variance 1."""

from __future__ import annotations

import numpy as np

from agent_r1.advantages.groups import has_no_variance

_VARIANCE_EPS = 1e-8
"""Added to the variance, as is customary."""


def whiten(values: np.ndarray, counted: np.ndarray, moved: np.ndarray) -> None:
    """Replace ``values`` at ``moved`` by (x - mean) / sqrt(variance + 1e-8), in place.

    Mean and unbiased variance are taken over ``counted``. If these values have no variance (also
    if there is one value), the result is 0.

    Args:
        values: float64[n].
        counted: bool[n]: values in the statistics.
        moved: bool[n]: values to replace.
    """
    chosen = values[counted]
    if len(chosen) < 2 or has_no_variance(chosen.min(), chosen.max()):
        values[moved] = 0.0
        return
    mean = chosen.mean()
    chosen -= mean
    variance = np.square(chosen, out=chosen).sum() / (len(chosen) - 1)
    np.subtract(values, mean, out=values, where=moved)
    np.divide(values, np.sqrt(variance + _VARIANCE_EPS), out=values, where=moved)

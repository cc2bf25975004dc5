"""Statistics of groups of trajectories: over trajectories, so that more turns weigh no more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ZERO_VARIANCE = 1e-6
"""A group whose rewards spread by less than this (relative to its maximum, if that is above 1)
has no variance: the rest is rounding of float32 rewards."""


class GroupStatistics(NamedTuple):
    """One value per group; of its scored members only."""

    size: np.ndarray
    """int64: scored members."""
    mean: np.ndarray
    """float64; 0 in a group without scored members."""
    std: np.ndarray
    """float64, ddof 1; 0 in groups without variance."""
    zero_variance: np.ndarray
    """bool: all equal, up to rounding (so is a group of one)."""


def group_statistics(rewards: np.ndarray, groups: np.ndarray) -> GroupStatistics:
    """Statistics of ``rewards`` by group.

    Args:
        rewards: float64[trajectories]; NaN is not scored and has no part in anything.
        groups: int64[trajectories], 0 … groups - 1.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    known = ~np.isnan(rewards)
    values, labels = rewards[known], groups[known]
    size = np.bincount(labels, minlength=count)
    mean = np.bincount(labels, values, count) / np.maximum(size, 1)
    # Two passes: E[x²] - mean² would cancel.
    squares = np.bincount(labels, (values - mean[labels]) ** 2, count)
    highest, lowest = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(highest, labels, values)
    np.minimum.at(lowest, labels, values)
    highest, lowest = np.where(size > 0, highest, 0.0), np.where(size > 0, lowest, 0.0)
    zero = highest - lowest <= ZERO_VARIANCE * np.maximum(1, np.abs(highest))
    std = np.where(zero, 0.0, np.sqrt(squares / np.maximum(size - 1, 1)))
    return GroupStatistics(size, mean, std, zero)

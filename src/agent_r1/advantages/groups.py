"""Statistics of groups. A trajectory counts once, whatever its number of turns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ZERO_VARIANCE = 1e-6
"""A group has no variance if its rewards differ by at most this much, relative to the maximum if
that is above 1. Smaller differences are rounding of float32 rewards."""


class GroupComparison(NamedTuple):
    """Each member relative to its group."""

    deviation: np.ndarray
    """float64[members]: reward - mean of the group; 0 if there is nothing to compare with."""
    std: np.ndarray
    """float64[members]: standard deviation of the group, ddof 1."""
    size: np.ndarray
    """int64[members]: scored members of the group."""
    compared: np.ndarray
    """bool[members]: scored, in a group with variance (never a group of one)."""

    def scaled(self, normalize_std: bool, eps: float) -> np.ndarray:
        """float64[members]: the deviation, divided by std + eps if ``normalize_std``."""
        return self.deviation / (self.std + eps) if normalize_std else self.deviation


class GroupStatistics(NamedTuple):
    """One value per group, over its scored members."""

    size: np.ndarray
    """int64: number of scored members."""
    mean: np.ndarray
    """float64; 0 in a group without scored members."""
    std: np.ndarray
    """float64: standard deviation, ddof 1; 0 in groups without variance."""
    zero_variance: np.ndarray
    """bool: all rewards are equal up to rounding; true for a group of one."""


def has_no_variance(lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """bool: the lowest and the highest value differ only by rounding."""
    return highest - lowest <= ZERO_VARIANCE * np.maximum(1, np.abs(highest))


def group_statistics(rewards: np.ndarray, groups: np.ndarray) -> GroupStatistics:
    """Statistics of ``rewards`` by group.

    Args:
        rewards: float64[trajectories]; NaN means not scored and is ignored.
        groups: int64[trajectories]: the group of each, 0 … groups - 1.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    known = ~np.isnan(rewards)
    values, labels = rewards[known], groups[known]
    size = np.bincount(labels, minlength=count)
    mean = np.bincount(labels, values, count) / np.maximum(size, 1)
    # Two passes: E[x²] - mean² loses precision by cancellation.
    squares = np.bincount(labels, (values - mean[labels]) ** 2, count)
    highest, lowest = np.full(count, -np.inf), np.full(count, np.inf)
    np.maximum.at(highest, labels, values)
    np.minimum.at(lowest, labels, values)
    highest, lowest = np.where(size > 0, highest, 0.0), np.where(size > 0, lowest, 0.0)
    zero = has_no_variance(lowest, highest)
    std = np.where(zero, 0.0, np.sqrt(squares / np.maximum(size - 1, 1)))
    return GroupStatistics(size, mean, std, zero)


def compare_in_groups(rewards: np.ndarray, groups: np.ndarray) -> GroupComparison:
    """Each reward relative to its group; see `group_statistics` for the arguments."""
    statistics = group_statistics(rewards, groups)
    compared = ~np.isnan(rewards) & ~statistics.zero_variance[groups]
    deviation = np.where(compared, rewards - statistics.mean[groups], 0.0)
    return GroupComparison(deviation, statistics.std[groups], statistics.size[groups], compared)

"""Statistics of groups of trajectories: over trajectories, so that more turns weigh no more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ZERO_VARIANCE = 1e-6
"""A group whose rewards spread by less than this (relative to its maximum, if that is above 1)
has no variance: the rest is rounding of float32 rewards."""


class GroupComparison(NamedTuple):
    """Members of groups against the other members."""

    deviation: np.ndarray
    """float64[members]: reward - mean of the group; 0 where there is nothing to compare with."""
    std: np.ndarray
    """float64[members]: of the group, ddof 1."""
    size: np.ndarray
    """int64[members]: scored members of the group."""
    compared: np.ndarray
    """bool[members]: scored, and the group has variance (so it is not a group of one)."""

    def scaled(self, normalize_std: bool, eps: float) -> np.ndarray:
        """float64[members]: deviations, over std + eps if ``normalize_std``."""
        return self.deviation / (self.std + eps) if normalize_std else self.deviation


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


def has_no_variance(lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
    """bool: values between these two differ by rounding only."""
    return highest - lowest <= ZERO_VARIANCE * np.maximum(1, np.abs(highest))


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
    zero = has_no_variance(lowest, highest)
    std = np.where(zero, 0.0, np.sqrt(squares / np.maximum(size - 1, 1)))
    return GroupStatistics(size, mean, std, zero)


def compare_in_groups(rewards: np.ndarray, groups: np.ndarray) -> GroupComparison:
    """Each of ``rewards`` against its group; see `group_statistics` for the arguments."""
    statistics = group_statistics(rewards, groups)
    compared = ~np.isnan(rewards) & ~statistics.zero_variance[groups]
    deviation = np.where(compared, rewards - statistics.mean[groups], 0.0)
    return GroupComparison(deviation, statistics.std[groups], statistics.size[groups], compared)

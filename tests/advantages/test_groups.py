"""Statistics of groups: over scored trajectories, numerically stable."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.advantages.groups import group_statistics


def test_hand_computed_statistics() -> None:
    rewards = np.array([1.0, 0.5, 0.0, np.nan, 0.0, 0.7, np.nan])
    groups = np.array([0, 1, 0, 0, 0, 2, 3])
    found = group_statistics(rewards, groups)
    assert found.size.tolist() == [3, 1, 1, 0]
    assert found.mean.tolist() == pytest.approx([1 / 3, 0.5, 0.7, 0])
    assert found.std.tolist() == pytest.approx([np.std([1, 0, 0], ddof=1), 0, 0, 0])
    assert found.zero_variance.tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("rewards", "zero"),
    [
        ([1, 1, 1, 1.0000001], True),
        ([0, 0, 0, 1.1e-6], False),
        ([1000, 1000.0005], True),  # relative to a maximum above 1
        ([1000, 1000.005], False),
        ([-2.0, -2.0], True),
    ],
)
def test_p13_float_noise_is_no_variance(rewards: list[float], zero: bool) -> None:
    found = group_statistics(np.array(rewards), np.zeros(len(rewards), int))
    assert found.zero_variance.tolist() == [zero]
    assert (found.std[0] == 0) == zero


def test_p14_the_standard_deviation_is_stable_for_large_means() -> None:
    rewards = 1e8 + np.array([0.0, 1.0, 2.0, 300.0])
    found = group_statistics(rewards, np.zeros(4, int))
    assert found.std[0] == pytest.approx(np.std([0, 1, 2, 300], ddof=1), rel=1e-6)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(-10, 10) | st.none()), min_size=1, max_size=30)
)
def test_agrees_with_numpy_group_by_group(members: list[tuple[int, float | None]]) -> None:
    groups = np.array([group for group, _ in members])
    rewards = np.array([np.nan if reward is None else reward for _, reward in members])
    found = group_statistics(rewards, groups)
    for group in set(groups.tolist()):
        values = rewards[(groups == group) & ~np.isnan(rewards)]
        assert found.size[group] == len(values)
        if len(values):
            assert found.mean[group] == pytest.approx(values.mean(), abs=1e-9)
        if not found.zero_variance[group]:
            assert found.std[group] == pytest.approx(values.std(ddof=1), rel=1e-9)


def test_no_trajectories_have_no_groups() -> None:
    assert len(group_statistics(np.array([]), np.array([], int)).size) == 0

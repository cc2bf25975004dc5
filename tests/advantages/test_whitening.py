"""Whitening: which values it changes, and which are in its statistics."""

from __future__ import annotations

import numpy as np
import pytest

from agent_r1.advantages.whitening import whiten
from tests.support.episodes import advantages, column, episode, single_turns, turn


def test_unbiased_variance_with_1e_8() -> None:
    values = np.array([1, 1, 0, 0, 0.5, 0.5])
    everything = np.ones(6, bool)
    whiten(values, everything, everything)
    expected = [1.118034, 1.118034, -1.118034, -1.118034, 0, 0]
    assert values == pytest.approx(expected, abs=1e-6)


def test_p14_the_variance_is_stable_for_large_means() -> None:
    values = 1e8 + np.array([0.0, 200.0, 400.0])
    everything = np.ones(3, bool)
    whiten(values, everything, everything)
    assert values == pytest.approx([-1, 0, 1])


def test_statistics_of_some_values_change_others() -> None:
    values = np.array([0.0, 2.0, 4.0, 9.0])
    whiten(values, np.array([1, 0, 1, 0], bool), np.array([1, 1, 1, 0], bool))
    assert values == pytest.approx([-1 / np.sqrt(2), 0, 1 / np.sqrt(2), 9])


@pytest.mark.parametrize("values", [[], [3.0], [1.0, 1.0000001]])
def test_p13_without_variance_it_is_zero(values: list[float]) -> None:
    everything = np.ones(len(values), bool)
    white = np.array(values)
    whiten(white, everything, everything)
    assert white.tolist() == [0.0] * len(values)


MIXTURE = [
    episode("a/0", turn(1.0, 1), environment="small"),
    episode("b/0", turn(0.0, 1), environment="small"),
    episode("c/0", turn(500.0, 1), environment="large"),
    episode("d/0", turn(100.0, 1), environment="large"),
]


def test_by_environment_each_has_its_own_scale() -> None:
    table = advantages(*MIXTURE, estimator="reinforce_plus_plus", whiten_by="environment")
    half = 1 / np.sqrt(2)
    assert np.concatenate(column(table)) == pytest.approx([half, -half, half, -half], abs=1e-6)


def test_by_batch_the_large_rewards_dominate() -> None:
    values = np.concatenate(column(advantages(*MIXTURE, estimator="reinforce_plus_plus")))
    assert abs(values[0] - values[1]) < 0.01 < 1 < values[2] - values[3]


def test_by_environment_one_environment_is_the_batch() -> None:
    group = single_turns(1, 0, 0.5, tokens=3)
    first = advantages(*group, whiten=True)
    assert advantages(*group, whiten=True, whiten_by="environment").equals(first)

"""REINFORCE++ with a baseline: r - mean of the group, then whitened over the batch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.episodes import advantages, column, single_turns

GROUPS = [*single_turns(1, 0), *single_turns(3, 1, group="r")]  # deviations ±0.5 and ±1


def test_hand_computed() -> None:
    table = advantages(*GROUPS, estimator="reinforce_plus_plus_baseline")
    deviation = np.sqrt((0.25 + 0.25 + 1 + 1) / 3)
    expected = np.array([0.5, -0.5, 1, -1]) / deviation
    assert [value for [value] in column(table)] == pytest.approx(expected, abs=1e-6)


def test_the_groups_standard_deviation_is_not_used() -> None:
    values = np.concatenate(column(advantages(*GROUPS, estimator="reinforce_plus_plus_baseline")))
    assert values[2] == pytest.approx(2 * values[0], rel=1e-6)


def test_whiten_overrides_the_papers_choice() -> None:
    table = advantages(*GROUPS, estimator="reinforce_plus_plus_baseline", whiten=False)
    assert table.equals(advantages(*GROUPS, estimator="dr_grpo"))

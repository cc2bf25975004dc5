"""RLOO: the reward minus the mean of the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.episodes import advantages, column, single_turns


def test_reference_value() -> None:
    table = advantages(*single_turns(1, 0, 0, 1), estimator="rloo")
    expected = [0.666667, -0.666667, -0.666667, 0.666667]
    assert [value for [value] in column(table)] == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=8))
def test_it_leaves_one_out(rewards: list[int]) -> None:
    table = advantages(*single_turns(*rewards), estimator="rloo")
    others = [(sum(rewards) - reward) / (len(rewards) - 1) for reward in rewards]
    expected = [reward - other for reward, other in zip(rewards, others, strict=True)]
    assert [value for [value] in column(table)] == pytest.approx(expected, abs=1e-5)

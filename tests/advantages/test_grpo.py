"""GRPO: (r - mean) / (std + eps), over the group."""

from __future__ import annotations

import pytest

from tests.support.episodes import advantages, column, single_turns


def test_reference_value() -> None:
    """ddof 1 and eps 1e-6."""
    table = advantages(*single_turns(1, 0, 0, 1), estimator="grpo")
    expected = [0.866024, -0.866024, -0.866024, 0.866024]
    assert [value for [value] in column(table)] == pytest.approx(expected, abs=1e-6)


def test_eps_is_added_to_the_standard_deviation() -> None:
    table = advantages(*single_turns(1, 0, 0, 1), estimator="grpo", eps=1e-4)
    expected = [0.865875, -0.865875, -0.865875, 0.865875]
    assert [value for [value] in column(table)] == pytest.approx(expected, abs=1e-6)

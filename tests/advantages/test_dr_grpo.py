"""Dr. GRPO: r - mean, over the group."""

from __future__ import annotations

import pytest

from tests.support.episodes import advantages, column, single_turns


def test_reference_value() -> None:
    table = advantages(*single_turns(1, 0, 0, 1), estimator="dr_grpo")
    assert column(table) == [[0.5], [-0.5], [-0.5], [0.5]]


def test_it_is_grpo_without_the_standard_deviation() -> None:
    group = single_turns(0.3, 0.9, 0, 1)
    plain = advantages(*group, estimator="grpo", normalize_std=False)
    assert advantages(*group, estimator="dr_grpo").equals(plain)


@pytest.mark.parametrize("normalize_std", [True, False])
def test_normalize_std_has_no_effect(normalize_std: bool) -> None:
    table = advantages(*single_turns(1, 0), estimator="dr_grpo", normalize_std=normalize_std)
    assert column(table) == [[0.5], [-0.5]]

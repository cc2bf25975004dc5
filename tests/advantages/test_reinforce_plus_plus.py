"""REINFORCE++: returns over all action tokens of a trajectory, whitened over the batch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.episodes import advantages, column, episode, single_turns, turn


def test_reference_value() -> None:
    """Whitened with the unbiased variance + 1e-8."""
    table = advantages(*single_turns(1, 0, 0.5, tokens=2), estimator="reinforce_plus_plus")
    expected = [[1.118034] * 2, [-1.118034] * 2, [0.0] * 2]
    assert column(table) == [pytest.approx(values, abs=1e-6) for values in expected]
    assert table["returns"].isna().all()


def test_whiten_overrides_the_papers_choice() -> None:
    table = advantages(
        *single_turns(1, 0, 0.5, tokens=2), estimator="reinforce_plus_plus", whiten=False
    )
    assert column(table) == [[1, 1], [0, 0], [0.5, 0.5]]


def test_p16_the_discount_continues_across_an_observation() -> None:
    """The later reward reaches the tokens of the earlier turn, discounted per token."""
    split = episode("q/0", turn(0.0, 2), turn(1.0, 2))
    together = episode("q/0", turn(1.0, 4))
    plain = {"estimator": "reinforce_plus_plus", "whiten": False, "gamma": 0.5}
    assert column(advantages(split, **plain)) == [[0.125, 0.25, 0.5, 1.0]]
    assert column(advantages(together, **plain)) == [[0.125, 0.25, 0.5, 1.0]]


def test_p12_an_unscored_trajectory_is_not_in_the_batch_s_statistics() -> None:
    scored = single_turns(1, 0, 0.5, tokens=2)
    failed = episode("q/9", turn(None, 7), end_reason="infrastructure", scored=False)
    without = column(advantages(*scored, estimator="reinforce_plus_plus"))
    table = advantages(*scored, failed, estimator="reinforce_plus_plus")
    assert column(table) == [*without, [0.0] * 7]


def test_p13_a_batch_of_equal_returns_has_advantage_zero() -> None:
    table = advantages(*single_turns(1, 1, 1.0000001), estimator="reinforce_plus_plus")
    assert column(table) == [[0.0]] * 3


def test_the_kl_is_in_the_reward_of_its_token() -> None:
    """k1 is 0.5, -1 and 0 nats; the return sums it from each token to the end."""
    only = episode(
        "q/0",
        turn(0.0, 2, policy=[-1, -2], reference=[-1.5, -1]),
        turn(1.0, 1, policy=[-0.5], reference=[-0.5]),
    )
    plain = {"estimator": "reinforce_plus_plus", "whiten": False, "kl_coef": 0.1}
    assert column(advantages(only, **plain)) == [pytest.approx([1.05, 1.1, 1.0])]
    by_step = column(advantages(only, level="step", **plain))
    assert by_step == [pytest.approx([1.05, 1.05, 1.0])]


def test_at_level_step_gamma_counts_steps() -> None:
    two = episode("q/0", turn(0.5, 3), turn(1.0, 2))
    plain = {"estimator": "reinforce_plus_plus", "whiten": False, "gamma": 0.5}
    assert column(advantages(two, level="step", **plain)) == [[1.0] * 3 + [1.0] * 2]
    three = episode("q/0", turn(0.0, 3), turn(0.0, 1), turn(1.0, 2))
    assert column(advantages(three, level="step", **plain)) == [[0.25] * 3 + [0.5] + [1.0] * 2]


def test_the_batch_baseline_is_a_mean_over_tokens() -> None:
    table = advantages(
        episode("q/0", turn(1.0, 3)), episode("q/1", turn(0.0, 1)), estimator="reinforce_plus_plus"
    )
    tokens = np.concatenate(column(table))
    assert tokens.mean() == pytest.approx(0, abs=1e-6)
    assert tokens == pytest.approx([0.5, 0.5, 0.5, -1.5])  # (r - 0.75) / 0.5

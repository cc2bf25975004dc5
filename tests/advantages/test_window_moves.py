"""Advantages when the context window moves: each step counts once.

The episode has three steps of 1, 2 and 1 tokens; the window moves before the second and the third.
Rewards are 0, 0.5 and 1; V is 0.1, (0.2, 0.3) and 0.4, and 0.5 in the state where it was truncated.
"""

from __future__ import annotations

import pytest

from tests.support.episodes import advantages, column, episode, turn

GAE = {"estimator": "gae", "gamma": 0.9, "lam": 0.8}
MOVED = {"context_prefix": 2, "context_start": 5}
MOVED_AGAIN = {"context_prefix": 2, "context_start": 9}


def long(name: str = "q/0", first=MOVED, second=MOVED_AGAIN):
    return episode(
        name,
        turn(0.0, 1, values=[0.1], context_token_ids=[1, 2]),
        turn(0.5, 2, values=[0.2, 0.3], context_token_ids=[3, 4, 5], **first),
        turn(1.0, 1, values=[0.4], context_token_ids=[6, 7], **second),
        end_reason="max_steps",
        bootstrap=0.5,
    )


def test_gae_over_tokens() -> None:
    """delta = 0.9·0.2 - 0.1, 0.9·0.3 - 0.2, 0.5 + 0.9·0.4 - 0.3, 1 + 0.9·0.5 - 0.4, and
    A_t = delta_t + 0.72 A_{t+1}: 1.05, 0.56 + 0.756, 0.07 + 0.94752, 0.08 + 0.7326144."""
    table = advantages(long(), **GAE)
    assert column(table) == [pytest.approx([0.8126144, 1.01752, 1.316, 1.05], abs=1e-6)]
    expected = [0.9126144, 1.21752, 1.616, 1.45]
    assert column(table, "returns") == [pytest.approx(expected, abs=1e-6)]


def test_gae_over_steps() -> None:
    """delta = 0.08, 0.5 + 0.9·0.4 - 0.2, 1.05: 1.05, 0.66 + 0.756, 0.08 + 0.72·1.416."""
    table = advantages(long(), level="step", **GAE)
    assert column(table) == [pytest.approx([1.09952, 1.416, 1.416, 1.05], abs=1e-6)]


def test_reinforce_plus_plus() -> None:
    """The return: 1, 0.5 + 0.9, 0.9·1.4, 0.9·1.26."""
    table = advantages(long(), estimator="reinforce_plus_plus", gamma=0.9, whiten=False)
    assert column(table) == [pytest.approx([1.134, 1.26, 1.4, 1.0], abs=1e-6)]


def test_grpo() -> None:
    """The trajectory's reward is 1.5 and the other's 0.5: (1.5 - 1) / 0.7071 for each token."""
    other = episode("q/1", turn(0.5, 2))
    table = advantages(long(), other, estimator="grpo")
    assert column(table) == [
        pytest.approx([0.707106] * 4, abs=1e-5),
        pytest.approx([-0.707106] * 2, abs=1e-5),
    ]


@pytest.mark.parametrize(
    "parameters",
    [
        GAE,
        GAE | {"level": "step"},
        {"estimator": "reinforce_plus_plus", "gamma": 0.9},
        {"estimator": "grpo"},
        {"estimator": "gigpo", "level": "step"},
    ],
)
def test_they_equal_those_of_an_episode_whose_window_never_moved(parameters) -> None:
    other = episode("q/1", turn(0.5, 2, values=[0.0, 0.2]))
    moved = advantages(long(), other, **parameters)
    assert moved.equals(advantages(long(first={}, second={}), other, **parameters))

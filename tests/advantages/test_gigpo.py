"""GiGPO: an episode relative to its group, a step relative to steps from the same state."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.episodes import advantages, column, episode, turn

GIGPO = {"estimator": "gigpo", "gamma": 0.5, "normalize_std": False}

SHARED = [
    episode("q/0", turn(0.0, 1, state_key="start"), turn(1.0, 2, state_key="door")),
    episode("q/1", turn(0.0, 1, state_key="start"), turn(0.0, 1, state_key="wall")),
]
"""Both start in the same state and share no other. Returns of the first steps: 0.5 and 0."""


def test_hand_computed_with_a_shared_anchor() -> None:
    """Episode ±0.5; at the start 0.5 - 0.25 = ±0.25; elsewhere there is nothing to compare with."""
    assert column(advantages(*SHARED, **GIGPO)) == [[0.75, 0.5, 0.5], [-0.75, -0.5]]


def test_both_parts_are_divided_by_their_own_standard_deviation() -> None:
    table = advantages(*SHARED, **GIGPO | {"normalize_std": True})
    part = 0.5 / np.sqrt(0.5)  # two members: (d / 2) / (d / sqrt(2)) at distance d
    expected = [[2 * part, part, part], [-2 * part, -part]]
    assert column(table) == [pytest.approx(values, abs=1e-5) for values in expected]


def test_the_step_s_weight() -> None:
    assert column(advantages(*SHARED, step_weight=2, **GIGPO)) == [[1.0, 0.5, 0.5], [-1.0, -0.5]]
    without = advantages(*SHARED, step_weight=0, **GIGPO)
    assert without.equals(advantages(*SHARED, estimator="grpo", normalize_std=False))


def test_equal_states_of_different_groups_are_not_compared() -> None:
    other = [episode("r/0", turn(5.0, state_key="start")), episode("r/1", turn(5.0))]
    table = advantages(*SHARED, *other, **GIGPO)
    assert column(table) == [*column(advantages(*SHARED, **GIGPO)), [0.0] * 2, [0.0] * 2]


def test_p11_an_anchor_of_one_adds_nothing() -> None:
    apart = [episode("q/0", turn(1.0, state_key="a")), episode("q/1", turn(0.0, state_key="b"))]
    assert column(advantages(*apart, **GIGPO)) == [[0.5, 0.5], [-0.5, -0.5]]


def test_two_visits_to_a_state_are_compared() -> None:
    """Returns from "s" are 0.5 and 1: the later visit is better, though the episodes tie."""
    loop = episode("q/0", turn(0.0, 1, state_key="s"), turn(1.0, 1, state_key="s"))
    assert column(advantages(loop, **GIGPO)) == [[-0.25, 0.25]]


def test_p12_an_unscored_sibling_is_in_no_anchor() -> None:
    failed = episode("q/2", turn(None, 2, state_key="start"), scored=False)
    table = advantages(*SHARED, failed, **GIGPO)
    assert column(table) == [*column(advantages(*SHARED, **GIGPO)), [0.0, 0.0]]


def test_p13_returns_that_differ_by_rounding_are_equal() -> None:
    noisy = [
        episode("q/0", turn(1.0000001, state_key="s")),
        episode("q/1", turn(1.0, state_key="s")),
    ]
    assert column(advantages(*noisy, estimator="gigpo")) == [[0.0, 0.0], [0.0, 0.0]]


def test_a_step_without_an_action_is_not_a_member_and_passes_its_reward_on() -> None:
    cut = episode(
        "q/0", turn(0.0, 1, state_key="start"), turn(-1.0, 0, state_key="start"),
        end_reason="context_overflow",
    )  # fmt: skip
    good = episode("q/1", turn(0.0, 1, state_key="start"))
    assert column(advantages(cut, good, **GIGPO)) == [[-1.0], [1.0]]  # -0.5 twice


def test_the_kl_of_a_step_is_in_its_return() -> None:
    """0.1 · 5 nats lower both parts by 0.5 in one of two equal trajectories."""
    near = episode("q/0", turn(1.0, 1, policy=[-1], reference=[-1], state_key="s"))
    far = episode("q/1", turn(1.0, 1, policy=[-1], reference=[-6], state_key="s"))
    assert column(advantages(near, far, kl_coef=0.1, **GIGPO)) == [
        [pytest.approx(0.5)],
        [pytest.approx(-0.5)],
    ]

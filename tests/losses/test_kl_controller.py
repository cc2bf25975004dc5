"""The steered KL coefficient: towards its target, by bounded steps, with its state in the open."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.losses.base import LossParameters
from agent_r1.losses.kl_controller import current_coefficient, steer
from agent_r1.parameters import ParameterError

STEERED = LossParameters(kl_coef=0.1, kl_target=0.02, kl_horizon=1000)


def test_a_fixed_coefficient_has_no_state() -> None:
    fixed = LossParameters(kl_coef=0.1)
    assert current_coefficient({"kl_coef": 7.0}, fixed) == 0.1
    assert steer({"other": 1}, fixed, kl=5.0, trajectories=64) == {"other": 1}


def test_the_first_update_starts_at_the_parameter() -> None:
    assert current_coefficient({}, STEERED) == 0.1
    assert current_coefficient({"kl_coef": 0.3}, STEERED) == 0.3


@pytest.mark.parametrize(
    ("kl", "factor"),
    # e = clip(kl / 0.02 - 1, ±0.2), the factor is 1 + e * 100 / 1000
    [(0.02, 1.0), (0.022, 1.01), (0.018, 0.99), (1.0, 1.02), (0.0, 0.98)],
)
def test_each_update_multiplies_by_the_proportional_error(kl: float, factor: float) -> None:
    state = steer({"kl_coef": 0.3, "other": 1}, STEERED, kl, trajectories=100)
    assert state == {"kl_coef": pytest.approx(0.3 * factor), "other": 1}
    assert json.loads(json.dumps(state)) == state


def test_it_settles_where_the_kl_is_the_target() -> None:
    state: dict = {}
    for _ in range(3000):
        kl = 0.004 / current_coefficient(state, STEERED)  # a policy that drifts against the KL
        state = steer(state, STEERED, kl, trajectories=100)
    assert current_coefficient(state, STEERED) == pytest.approx(0.2, rel=1e-3)


@given(st.floats(0, 1e6), st.integers(1, 10**9))
def test_no_kl_and_no_batch_can_turn_or_zero_it(kl: float, trajectories: int) -> None:
    coefficient = steer({}, STEERED, kl, trajectories)["kl_coef"]
    assert 0.08 - 1e-9 <= coefficient <= 0.12 + 1e-9


def test_nothing_measured_moves_nothing() -> None:
    assert steer({"kl_coef": 0.3}, STEERED, kl=0.0, trajectories=0) == {"kl_coef": 0.3}


def test_a_target_without_a_start_is_refused() -> None:
    with pytest.raises(ParameterError, match="set kl_coef to where it shall start"):
        LossParameters.read({"kl_target": 0.1}, "update")

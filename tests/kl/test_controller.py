"""The steered KL coefficient: bounded steps towards the target, with the state as data."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.advantages import AdvantageParameters
from agent_r1.kl.controller import KlParameters, current_coefficient, steer
from agent_r1.parameters import ParameterError
from agent_r1.training.update_parameters import UpdateParameters

STEERED = KlParameters(kl_coef=0.1, kl_target=0.02, kl_horizon=1000)


def test_a_fixed_coefficient_has_no_state() -> None:
    fixed = KlParameters(kl_coef=0.1)
    assert current_coefficient({"kl_coef": 7.0}, "kl_coef", fixed) == 0.1
    assert steer({"other": 1}, "kl_coef", fixed, kl=5.0, trajectories=64) == {"other": 1}


def test_the_first_update_starts_at_the_parameter() -> None:
    assert current_coefficient({}, "kl_coef", STEERED) == 0.1
    assert current_coefficient({"kl_coef": 0.3}, "kl_coef", STEERED) == 0.3


@pytest.mark.parametrize(
    ("kl", "factor"),
    # e = clip(kl / 0.02 - 1, ±0.2), the factor is 1 + e * 100 / 1000
    [(0.02, 1.0), (0.022, 1.01), (0.018, 0.99), (1.0, 1.02), (0.0, 0.98)],
)
def test_each_update_multiplies_by_the_proportional_error(kl: float, factor: float) -> None:
    state = steer({"kl_coef": 0.3, "other": 1}, "kl_coef", STEERED, kl, trajectories=100)
    assert state == {"kl_coef": pytest.approx(0.3 * factor), "other": 1}
    assert json.loads(json.dumps(state)) == state


def test_it_settles_where_the_kl_is_the_target() -> None:
    state: dict = {}
    for _ in range(3000):
        kl = 0.004 / current_coefficient(
            state, "kl_coef", STEERED
        )  # the policy drifts further at a lower coefficient
        state = steer(state, "kl_coef", STEERED, kl, trajectories=100)
    assert current_coefficient(state, "kl_coef", STEERED) == pytest.approx(0.2, rel=1e-3)


@given(st.floats(0, 1e6), st.integers(1, 10**9))
def test_it_stays_positive_for_every_kl_and_batch_size(kl: float, trajectories: int) -> None:
    coefficient = steer({}, "kl_coef", STEERED, kl, trajectories)["kl_coef"]
    assert 0.08 - 1e-9 <= coefficient <= 0.12 + 1e-9


def test_without_trajectories_it_does_not_change() -> None:
    assert steer({"kl_coef": 0.3}, "kl_coef", STEERED, kl=0.0, trajectories=0) == {"kl_coef": 0.3}


def test_the_kl_of_the_reward_and_of_the_loss_are_steered_separately() -> None:
    state = steer({"kl_coef": 0.3}, "reward_kl_coef", STEERED, kl=1.0, trajectories=100)
    assert state == {"kl_coef": 0.3, "reward_kl_coef": pytest.approx(0.1 * 1.02)}
    assert current_coefficient(state, "kl_coef", STEERED) == 0.3
    assert current_coefficient(state, "reward_kl_coef", STEERED) == pytest.approx(0.102)


@pytest.mark.parametrize("group", [UpdateParameters, AdvantageParameters])
def test_a_target_without_a_start_is_refused(group: type[KlParameters]) -> None:
    with pytest.raises(ParameterError, match="set kl_coef to a start value above 0"):
        group.read({"kl_target": 0.1}, "update")

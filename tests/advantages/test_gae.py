"""GAE at both levels: the chain of actions, where values are read, and how trajectories end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1 import tables
from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.schemas import SchemaError
from agent_r1.tables.arrays import ragged
from tests.support.episodes import Episode, advantages, column, episode, tables_of, turn

GAE = {"estimator": "gae", "gamma": 0.9, "lam": 0.8}


def two_turns(**ending) -> Episode:
    """Two tokens, an observation, two tokens; the reward is 1."""
    return episode(
        "q/0",
        turn(0.0, values=[0.1, 0.2], context_token_ids=[1, 2]),
        turn(1.0, values=[0.3, 0.4], context_token_ids=[7, 8, 9]),
        **ending,
    )


def test_p16_reference_value_with_an_observation_between_the_actions() -> None:
    table = advantages(two_turns(), **GAE)
    assert column(table) == [pytest.approx([0.385453, 0.42424, 0.492, 0.6], abs=1e-6)]
    expected = [0.485453, 0.62424, 0.792, 1.0]
    assert column(table, "returns") == [pytest.approx(expected, abs=1e-6)]


def test_p16_the_observation_changes_nothing() -> None:
    one_turn = episode("q/0", turn(1.0, 4, values=[0.1, 0.2, 0.3, 0.4]))
    for name in ("advantages", "returns"):
        gap, none = (column(advantages(part, **GAE), name) for part in (two_turns(), one_turn))
        assert gap == none


def test_p19_a_truncated_trajectory_bootstraps() -> None:
    table = advantages(two_turns(end_reason="max_steps", bootstrap=0.5), **GAE)
    assert column(table) == [pytest.approx([0.553414, 0.65752, 0.816, 1.05], abs=1e-6)]


@pytest.mark.parametrize("level", ["token", "step"])
def test_without_bootstrap_a_truncated_trajectory_counts_as_terminated(level: str) -> None:
    cut = two_turns(end_reason="max_steps", bootstrap=0.5)
    ended = advantages(cut, level=level, bootstrap_truncated=False, **GAE)
    answered = advantages(two_turns(), level=level, **GAE)
    for name in ("advantages", "returns"):
        assert column(ended, name) == column(answered, name)


def test_p19_a_terminated_trajectory_does_not_bootstrap() -> None:
    table = advantages(two_turns(bootstrap=0.5), **GAE)
    assert column(table) == [pytest.approx([0.385453, 0.42424, 0.492, 0.6], abs=1e-6)]


def test_a_step_s_reward_falls_on_its_last_token() -> None:
    early = episode("q/0", turn(1.0, 2, values=[0.0, 0.0]), turn(0.0, 1, values=[0.0]))
    assert column(advantages(early, estimator="gae", gamma=0.5)) == [[0.5, 1.0, 0.0]]


def test_level_step_hand_computed() -> None:
    """V = 0.1 and 0.3: delta_1 = 1 - 0.3, delta_0 = 0.9 · 0.3 - 0.1, A_0 = 0.17 + 0.72 · 0.7."""
    table = advantages(two_turns(), level="step", **GAE)
    assert column(table) == [pytest.approx([0.674, 0.674, 0.7, 0.7], abs=1e-6)]
    [returns] = column(table, "returns")
    assert [returns[0], returns[2]] == pytest.approx([0.774, 1.0], abs=1e-6)
    assert returns[1] is returns[3] is None


def test_p19_level_step_truncated() -> None:
    """delta_1 = 1 + 0.9 · 0.5 - 0.3 = 1.15, A_0 = 0.17 + 0.72 · 1.15."""
    truncated = two_turns(end_reason="token_budget", bootstrap=0.5)
    table = advantages(truncated, level="step", **GAE)
    assert column(table) == [pytest.approx([0.998, 0.998, 1.15, 1.15], abs=1e-6)]


def test_level_step_reads_only_the_value_where_the_state_ends() -> None:
    other = episode("q/0", turn(0.0, values=[0.1, 5.0]), turn(1.0, values=[0.3, -5.0]))
    first, second = (advantages(part, level="step", **GAE) for part in (two_turns(), other))
    assert first.equals(second)


def test_null_elements_of_returns_survive_arrow() -> None:
    table = advantages(two_turns(), level="step", **GAE)
    again = tables.to_frame(tables.to_arrow(table, "advantages"))
    assert again.equals(table)
    values, offsets = ragged(again["returns"])
    assert np.isnan(values).tolist() == [False, True, False, True]
    assert offsets.tolist() == [0, 2, 4]


@pytest.mark.parametrize("level", ["token", "step"])
def test_p18_a_step_without_an_action_is_not_in_the_chain(level: str) -> None:
    """Its reward moves to the last action; the bootstrap value is that of the last state."""
    with_it = episode(
        "q/0", turn(0.5, values=[0.1, 0.2]), turn(-1.0, 0, values=[]),
        end_reason="context_overflow", bootstrap=0.3,
    )  # fmt: skip
    without = episode("q/0", turn(-0.5, values=[0.1, 0.2]), end_reason="max_steps", bootstrap=0.3)
    first, second = (advantages(part, level=level, **GAE) for part in (with_it, without))
    assert column(first) == column(second)
    assert column(first, "returns") == column(second, "returns")


def test_a_trajectory_without_actions_needs_no_values() -> None:
    table = advantages(episode("q/0", turn(0.0, 0), end_reason="prompt_too_long"), **GAE)
    assert column(table) == [[]]


def test_whitening_does_not_change_the_critics_targets() -> None:
    plain, white = (advantages(two_turns(), whiten=whiten, **GAE) for whiten in (False, True))
    assert column(white, "returns") == column(plain, "returns")
    assert np.mean(column(white)) == pytest.approx(0, abs=1e-6)
    assert column(advantages(two_turns(), **GAE)) == column(plain)  # the paper does not whiten


def test_the_kl_of_each_token_is_part_of_its_reward() -> None:
    """k3 is 0, 0.718282 and 0 nats; with lambda 1 and V = 0 advantages are returns of the KL."""
    policy, reference = [-1.0, -2.0, -0.5], [-1.0, -1.0, -0.5]
    only = episode(
        "q/0",
        turn(0.0, 2, [0.0, 0.0], policy[:2], reference[:2]),
        turn(1.0, 1, [0.0], policy[2:], reference[2:]),
    )
    table = advantages(only, estimator="gae", kl_coef=0.1, kl_estimator="k3")
    assert column(table) == [pytest.approx([1 - 0.0718282, 1 - 0.0718282, 1.0], abs=1e-6)]


def test_without_values_the_error_says_what_to_do() -> None:
    blind = episode("q/0", turn(0.0, values=[0.1, 0.2]), turn(1.0))
    message = r"'logprobs', trajectory 'q/0', step 1: values is missing; set logprobs.values"
    with pytest.raises(SchemaError, match=message):
        advantages(blind, **GAE)


def test_without_a_bootstrap_value_a_truncated_trajectory_is_an_error() -> None:
    message = r"trajectory 'q/0', step 1: bootstrap_value is nan, but the trajectory is truncated"
    with pytest.raises(SchemaError, match=message):
        advantages(two_turns(end_reason="max_steps"), **GAE)


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_an_error(bad: float | None) -> None:
    with pytest.raises(SchemaError, match="step 0: values of a token is null or not finite"):
        advantages(episode("q/0", turn(1.0, values=[0.1, bad])), **GAE)


def test_values_of_another_length_are_an_error() -> None:
    with pytest.raises(SchemaError, match="step 0: values does not have the length of the action"):
        advantages(episode("q/0", turn(1.0, values=[0.1])), **GAE)


def test_without_the_table_logprobs_it_is_an_error() -> None:
    rollouts, rewards, _ = tables_of(two_turns())
    with pytest.raises(SchemaError, match="needs table 'logprobs'"):
        compute_advantages(rollouts, rewards, None, GAE)


def test_p12_an_unscored_trajectory_needs_no_values_and_changes_nothing() -> None:
    failed = episode("q/1", turn(None, 3), end_reason="infrastructure", scored=False)
    broken = episode(
        "q/2", turn(None, 1, values=[float("nan")]), end_reason="infrastructure", scored=False
    )
    table = advantages(two_turns(), failed, broken, **GAE)
    assert column(table) == [*column(advantages(two_turns(), **GAE)), [0.0] * 3, [0.0]]
    assert column(table, "returns")[1:] == [[None] * 3, [None]]
    assert column(table, "loss_mask") == [[True] * 4, [False] * 3, [False]]


@given(st.integers(0, 2**32 - 1))
def test_lambda_one_without_discount_is_return_minus_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, 3)
    parts = [turn(float(rng.integers(-3, 3)), n, rng.normal(size=n).tolist()) for n in lengths]
    whole = episode("q/0", *parts)
    table = advantages(whole, estimator="gae")
    plain = column(advantages(whole, estimator="returns"))[0]
    values = [value for part in parts for value in part["values"]]
    assert np.array(column(table)[0]) == pytest.approx(np.subtract(plain, values), abs=1e-5)
    assert column(table, "returns")[0] == pytest.approx(plain, abs=1e-5)

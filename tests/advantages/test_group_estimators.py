"""Properties of every estimator that compares a trajectory with its group."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.pipelines.advantage.nodes import compute_advantages
from tests.support.episodes import advantages, column, episode, single_turns, tables_of, turn

GROUP_ESTIMATORS = ["dr_grpo", "gigpo", "grpo", "reinforce_plus_plus_baseline", "rloo"]
every_one = pytest.mark.parametrize("estimator", GROUP_ESTIMATORS)
REWARDS = st.lists(st.floats(-3, 3, width=32), min_size=1, max_size=8)


@every_one
def test_p11_a_group_of_one_has_advantage_zero(estimator: str) -> None:
    table = advantages(*single_turns(0.7), estimator=estimator)
    assert column(table) == [[0.0]]
    assert column(table, "loss_mask") == [[True]]
    assert table["group_size"].tolist() == [1]


@every_one
@pytest.mark.parametrize("whiten", [False, True])
def test_p11_also_with_other_groups_in_the_batch(estimator: str, whiten: bool) -> None:
    """Longer good answers move the mean over tokens away from 0; a group of one must stay 0."""
    others = [episode("p/0", turn(1.0, 5)), episode("p/1", turn(0.0, 1))]
    table = advantages(*single_turns(0.7), *others, estimator=estimator, whiten=whiten)
    *compared, alone = column(table)
    assert alone == [0.0]
    assert all(value != 0 for values in compared for value in values)


@every_one
@settings(max_examples=30)
@given(rewards=REWARDS)
def test_p12_an_unscored_sibling_changes_nothing(estimator: str, rewards: list[float]) -> None:
    without = column(advantages(*single_turns(*rewards), estimator=estimator))
    table = advantages(*single_turns(*rewards, None), estimator=estimator)
    assert column(table) == [*without, [0.0]]
    assert column(table, "loss_mask") == [[True]] * len(rewards) + [[False]]
    assert set(table["group_size"]) == {len(rewards)}


@every_one
@pytest.mark.parametrize("normalize_std", [True, False])
def test_p13_float_noise_is_no_variance(estimator: str, normalize_std: bool) -> None:
    group = single_turns(1, 1, 1, 1.0000001)
    table = advantages(*group, estimator=estimator, normalize_std=normalize_std)
    assert column(table) == [[0.0]] * 4


@every_one
def test_p14_advantages_stay_bounded(estimator: str) -> None:
    table = advantages(*single_turns(0, *[0.95] * 7), estimator=estimator, step_weight=0)
    bound = (8 - 1) / np.sqrt(8)  # largest deviation of one of n values, in standard deviations
    assert np.abs(np.concatenate(column(table))).max() <= bound + 1e-4


@every_one
def test_p17_more_turns_do_not_weigh_more(estimator: str) -> None:
    """One turn more: the statistics count trajectories, not turns."""

    def first(turns: int) -> list[float]:
        long = episode("q/0", *[turn(0.0, state_key="x")] * (turns - 1), turn(1.0, state_key="x"))
        others = [episode("q/1", turn(0.0)), episode("q/2", turn(0.5))]
        table = advantages(long, *others, estimator=estimator, step_weight=0, whiten=False)
        return [values[0] for values in column(table)]

    assert first(1) == first(2) == first(5)


@every_one
def test_p21_an_outcome_counts_once_however_many_turns_there_are(estimator: str) -> None:
    """``trajectory_reward`` is repeated on each row; it must not be summed over rows."""
    many = episode("q/0", turn(0.0), turn(0.0), turn(1.0))
    twice = [many, episode("q/1", turn(0.0)), episode("q/2", turn(1.0))]
    values = column(advantages(*twice, estimator=estimator, step_weight=0))
    assert set(values[0]) == set(values[2])


@every_one
@settings(max_examples=20)
@given(rewards=REWARDS, seed=st.integers(0, 99))
def test_rows_may_be_in_any_order(estimator: str, rewards: list[float], seed: int) -> None:
    group = [
        episode(f"q/{index}", turn(0.0, 1 + index % 3, state_key="a"), turn(reward, 2))
        for index, reward in enumerate(rewards)
    ]
    rollouts, scored, logprobs = tables_of(*group)
    expected = compute_advantages(rollouts, scored, logprobs, {"estimator": estimator})
    order = np.random.default_rng(seed).permutation(len(rollouts))
    shuffled = rollouts.take(order).reset_index(drop=True)
    result = compute_advantages(shuffled, scored, logprobs, {"estimator": estimator})
    assert result.equals(expected.take(order).reset_index(drop=True))


@every_one
@settings(max_examples=30)
@given(rewards=REWARDS)
def test_a_group_s_advantages_sum_to_zero(estimator: str, rewards: list[float]) -> None:
    values = np.concatenate(column(advantages(*single_turns(*rewards), estimator=estimator)))
    assert np.isfinite(values).all()
    assert values.sum() == pytest.approx(0, abs=1e-4)


@every_one
def test_there_are_no_returns_for_a_critic(estimator: str) -> None:
    assert advantages(*single_turns(1, 0), estimator=estimator)["returns"].isna().all()


@every_one
def test_the_kl_is_subtracted_from_the_reward_before_the_statistics(
    estimator: str,
) -> None:
    """1 - 0.1 · (2 + 4 nats) = 0.4 - 0: equal rewards, so nothing to learn."""
    first = episode(
        "q/0",
        turn(0.0, 1, policy=[-1], reference=[-3]),
        turn(1.0, 2, policy=[-1, -1], reference=[-2, -4]),
    )
    second = episode("q/1", turn(0.4, 1, policy=[-1], reference=[-1]))
    table = advantages(first, second, estimator=estimator, kl_coef=0.1, step_weight=0)
    assert column(table) == [[0.0] * 3, [0.0]]
    table = advantages(first, second, estimator=estimator, kl_coef=0.2, step_weight=0)
    assert column(table)[0][0] < 0 < column(table)[1][0]

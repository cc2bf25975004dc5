"""The ``advantages`` table of every estimator: masks, order, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1 import schemas, tables
from agent_r1.advantages.inputs import CUT
from agent_r1.advantages.registry import ESTIMATORS
from agent_r1.parameters import ParameterError
from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.schemas import SchemaError
from tests.support.episodes import advantages, column, episode, single_turns, tables_of, turn

every_one = pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
LIMITS = [reason.value for reason in CUT]


def with_values(reward: float, name: str, end_reason: str = "answered", tokens: int = 2):
    parts = [turn(0.0, tokens, [0.1] * tokens), turn(reward, 1, [0.2], state_key="x")]
    return episode(name, *parts, end_reason=end_reason, bootstrap=0.3)


GROUP = [with_values(1.0, "q/0"), with_values(0.0, "q/1", tokens=3), with_values(0.4, "r/0")]
SCHEMA = schemas.SCHEMAS["advantages"]


@every_one
@pytest.mark.parametrize("level", ["token", "step"])
def test_every_estimator_fills_the_schema(estimator: str, level: str) -> None:
    table = advantages(*GROUP, estimator=estimator, level=level, gamma=0.9, lam=0.9)
    assert table.equals(tables.conform(table, "advantages"))
    assert [len(values) for values in table["advantages"]] == [2, 1, 3, 1, 2, 1]
    assert [len(values) for values in table["loss_mask"]] == [2, 1, 3, 1, 2, 1]
    assert table["group_size"].tolist() == [2, 2, 2, 2, 1, 1]
    assert np.isfinite(np.concatenate(column(table))).all()


@every_one
@settings(max_examples=20)
@given(seed=st.integers(0, 999))
def test_rows_may_be_in_any_order(estimator: str, seed: int) -> None:
    parts = [*GROUP, episode("r/1", turn(None, 2), scored=False)]
    rollouts, rewards, logprobs = tables_of(*parts)
    chosen = {"estimator": estimator, "gamma": 0.9, "lam": 0.9}
    expected = compute_advantages(rollouts, rewards, logprobs, chosen)
    rng = np.random.default_rng(seed)
    order, *others = (rng.permutation(len(rollouts)) for _ in range(3))
    shuffled = [
        table.take(rows).reset_index(drop=True)
        for table, rows in zip((rollouts, rewards, logprobs), (order, *others), strict=True)
    ]
    result = compute_advantages(*shuffled, chosen)
    assert result.equals(expected.take(order).reset_index(drop=True))


@every_one
def test_an_empty_iteration_has_an_empty_table(estimator: str) -> None:
    empty = [tables.empty(name) for name in ("rollouts", "rewards", "logprobs")]
    for whiten_by in ("batch", "environment"):
        options = {"estimator": estimator, "whiten": True, "whiten_by": whiten_by}
        assert len(compute_advantages(*empty, options)) == 0


@every_one
def test_p12_an_iteration_without_scores(estimator: str) -> None:
    failed = [episode(f"q/{index}", turn(None, 2), scored=False) for index in range(2)]
    table = advantages(*failed, estimator=estimator)
    assert column(table) == [[0.0, 0.0]] * 2
    assert column(table, "loss_mask") == [[False, False]] * 2
    assert table["group_size"].tolist() == [0, 0]


@pytest.mark.parametrize("reason", LIMITS)
def test_cut_trajectories_are_masked_but_still_compared_with(reason: str) -> None:
    """DAPO: they are in the mean and deviation of the group, but not in the loss."""
    group = [*single_turns(1, 0.5), episode("q/2", turn(0.0, 1), end_reason=reason)]
    plain, masked = (advantages(*group, mask_truncated=flag) for flag in (False, True))
    assert column(plain, "loss_mask") == [[True]] * 3
    assert column(masked, "loss_mask") == [[True], [True], [False]]
    assert column(masked) == column(plain)
    assert masked["group_size"].tolist() == [3, 3, 3]


def test_only_a_limit_on_the_agent_cuts() -> None:
    reasons = ["answered", "environment", "tool_budget"]
    group = [
        episode(f"q/{index}", turn(index, 1), end_reason=reason)
        for index, reason in enumerate(reasons)
    ]
    assert column(advantages(*group, mask_truncated=True), "loss_mask") == [[True]] * 3


def test_whitening_is_over_what_is_trained_on() -> None:
    group = [*single_turns(1, 0), episode("q/2", turn(-7.0, 5), end_reason="max_steps")]
    table = advantages(*group, estimator="reinforce_plus_plus", mask_truncated=True)
    assert column(table)[:2] == [[pytest.approx(0.5**0.5)], [pytest.approx(-(0.5**0.5))]]


@every_one
def test_p34_a_reward_that_is_not_finite_is_refused(estimator: str) -> None:
    with pytest.raises(SchemaError, match=r"'rewards', trajectory 'q/1', step 1: .*is nan"):
        advantages(GROUP[0], with_values(float("nan"), "q/1"), estimator=estimator)


def test_one_unscored_step_in_a_scored_trajectory_is_an_error() -> None:
    partly = episode("q/0", turn(None), turn(1.0))
    with pytest.raises(SchemaError, match="trajectory 'q/0', step 0: reward is nan, but the"):
        advantages(partly, estimator="returns")


def test_p20_an_unknown_estimator_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"'reinforce'.*Did you mean 'reinforce_plus_plus'"):
        advantages(*GROUP, estimator="reinforce")
    with pytest.raises(ParameterError, match=r"'goe'.*Did you mean 'gae'.*Known: dr_grpo, gae"):
        advantages(*GROUP, estimator="goe")


def test_p15_groups_of_one_for_repeated_tasks_are_an_error() -> None:
    wrong = [episode(f"q/{index}", turn(1.0), group_id=f"g{index}") for index in range(4)]
    with pytest.raises(SchemaError, match="'q' has 4 trajectories, but every group_id"):
        advantages(*wrong, estimator="reinforce_plus_plus_baseline")


def test_p15_groups_of_one_are_fine_for_estimators_without_groups() -> None:
    alone = [episode(f"q/{index}", turn(1.0), group_id=f"g{index}") for index in range(4)]
    assert column(advantages(*alone, estimator="returns")) == [[1.0, 1.0]] * 4

"""Advantages through the node: reference values, and the faults that group baselines have had."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1 import tables
from agent_r1.parameters import ParameterError
from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.schemas import SchemaError
from tests.support.step_tables import per_token, rewards, rollouts, step


def group(scores: list[float | None], **parameters) -> tuple[list[float], pd.DataFrame]:
    """First advantage of each trajectory of one group of one-step trajectories, and the table."""
    table = rollouts(*(step(f"q/{index}") for index in range(len(scores))))
    scored = rewards(table, **{f"q__{index}": score for index, score in enumerate(scores)})
    result = compute_advantages(table, scored, logprobs_of(table), parameters)
    return [values[0] for values in result["advantages"]], result


def logprobs_of(table: pd.DataFrame) -> pd.DataFrame:
    tokens = sum(len(action) for action in table["action_token_ids"])
    return per_token(table, "logprobs", policy_logprobs=[-1.0] * tokens)


def test_grpo() -> None:
    advantages, _ = group([1, 0, 0, 1])
    expected = [0.866024, -0.866024, -0.866024, 0.866024]
    assert advantages == pytest.approx(expected, abs=1e-6)


def test_without_the_standard_deviation_it_is_dr_grpo() -> None:
    advantages, _ = group([1, 0, 0, 1], normalize_std=False)
    assert advantages == pytest.approx([0.5, -0.5, -0.5, 0.5])


def test_every_token_of_every_step_gets_the_trajectory_s_advantage() -> None:
    table = rollouts(
        step("q/0", 0, action=[1, 2, 3]),
        step("q/0", 1, action=[4]),
        step("q/1", 0, action=[]),
        step("q/1", 1, action=[5, 6]),
    )
    scored = rewards(table, q__0=1.0, q__1=0.0)
    result = compute_advantages(table, scored, logprobs_of(table), {"normalize_std": False})
    lists = [list(values) for values in result["advantages"]]
    assert lists == [[0.5, 0.5, 0.5], [0.5], [], [-0.5, -0.5]]
    assert [list(values) for values in result["loss_mask"]] == [[True] * 3, [True], [], [True] * 2]
    assert result["group_size"].tolist() == [2, 2, 2, 2]
    assert result["returns"].isna().all()
    assert result.equals(tables.conform(result, "advantages"))


@pytest.mark.parametrize("normalize_std", [True, False])
def test_p11_a_group_of_one_has_advantage_zero(normalize_std: bool) -> None:
    advantages, result = group([0.7], normalize_std=normalize_std)
    assert advantages == [0.0]
    assert result["group_size"].tolist() == [1]


def test_p12_an_unscored_sibling_changes_nothing() -> None:
    without, _ = group([1, 0, 0, 1])
    with_it, result = group([1, 0, 0, 1, None])
    assert with_it == [*without, 0.0]
    assert result["group_size"].tolist() == [4] * 5
    assert [any(mask) for mask in result["loss_mask"]] == [True] * 4 + [False]


def test_p13_float_noise_gives_no_advantage() -> None:
    assert group([1, 1, 1, 1.0000001])[0] == [0.0] * 4
    assert group([1, 1, 1, 1.0000001], normalize_std=False)[0] == [0.0] * 4


def test_p14_advantages_stay_bounded() -> None:
    advantages, _ = group([0] + [0.95] * 7)
    bound = (8 - 1) / np.sqrt(8)  # the largest deviation of one of n, in units of the std
    assert max(map(abs, advantages)) == pytest.approx(bound, abs=1e-4)


def test_p15_groups_of_one_where_a_task_was_tried_often_are_an_error() -> None:
    table = rollouts(*(step(f"q/{index}", group_id=f"wrong-{index}") for index in range(4)))
    scored = rewards(table, q__0=1, q__1=0, q__2=0, q__3=1)
    with pytest.raises(SchemaError, match="'q' has 4 trajectories, but every group_id"):
        compute_advantages(table, scored, logprobs_of(table), {})


def test_p17_more_turns_do_not_weigh_more() -> None:
    short = rollouts(step("q/0"), step("q/1"), step("q/2"))
    long = rollouts(step("q/0"), step("q/0", 1), step("q/0", 2), step("q/1"), step("q/2"))
    scores = {"q__0": 1.0, "q__1": 0.0, "q__2": 0.5}
    first = compute_advantages(short, rewards(short, **scores), logprobs_of(short), {})
    second = compute_advantages(long, rewards(long, **scores), logprobs_of(long), {})
    kept = second[second["step_index"] == 0].reset_index(drop=True)
    assert kept["advantages"].tolist() == first["advantages"].tolist()


def test_p20_an_unknown_estimator_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ParameterError, match=r"unknown advantage estimator 'grop'.*'grpo'"):
        group([1, 0], estimator="grop")


def test_p34_a_reward_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(SchemaError, match="trajectory_reward is nan"):
        group([1.0, float("nan")])


def test_whitening_covers_the_trained_tokens_only() -> None:
    _, result = group([1, 0, 0, None], whiten=True)
    tokens = np.concatenate([list(values) for values in result["advantages"]])
    assert tokens[:6].mean() == pytest.approx(0, abs=1e-6)
    assert tokens[:6].std(ddof=1) == pytest.approx(1, abs=1e-5)
    assert tokens[6:].tolist() == [0, 0]


def test_rows_of_the_inputs_may_stand_in_any_order() -> None:
    table = rollouts(step("q/0"), step("q/0", 1), step("q/1"), step("p/0"), step("p/1"))
    scored = rewards(table, q__0=1, q__1=0, p__0=0.2, p__1=0.3)
    expected = compute_advantages(table, scored, logprobs_of(table), {})
    order = np.array([3, 1, 4, 0, 2])
    shuffled = table.take(order).reset_index(drop=True)
    result = compute_advantages(shuffled, scored, logprobs_of(table), {})
    assert result.equals(expected.take(order).reset_index(drop=True))


@given(st.lists(st.none() | st.floats(-3, 3, width=32), min_size=1, max_size=12))
def test_a_group_s_advantages_sum_to_zero(scores: list[float | None]) -> None:
    advantages, _ = group(scores)
    assert np.isfinite(advantages).all()
    assert sum(advantages) == pytest.approx(0, abs=1e-4)
    assert all(a == 0 for a, score in zip(advantages, scores, strict=True) if score is None)


@pytest.mark.parametrize(
    ("controllers", "parameters", "coefficient"),
    [
        (None, {"kl_coef": 0.5}, 0.5),
        ({"reward_kl_coef": 0.25}, {"kl_coef": 0.5}, 0.5),  # fixed
        ({}, {"kl_coef": 0.5, "kl_target": 0.1}, 0.5),  # where it starts
        ({"kl_coef": 9.0}, {"kl_coef": 0.5, "kl_target": 0.1}, 0.5),  # the loss has its own
        ({"reward_kl_coef": 0.25}, {"kl_coef": 0.5, "kl_target": 0.1}, 0.25),
    ],
)
def test_the_kl_in_the_reward_has_the_coefficient_of_its_controller(
    controllers, parameters, coefficient
) -> None:
    table = rollouts(step("q/0"), step("q/1"))
    said = {"policy_logprobs": [-1.0] * 4, "reference_logprobs": [-1.25, -1.0, -1.0, -1.0]}
    logprobs = per_token(table, "logprobs", **said)
    scored = rewards(table, q__0=1.0, q__1=1.0)
    how = {"estimator": "returns"} | parameters
    result = compute_advantages(table, scored, logprobs, how, controllers)
    # k1 is 0.25 nats on the first token of q/0, and 0 elsewhere
    assert list(result["advantages"][0]) == pytest.approx([1 - 0.25 * coefficient, 1])
    assert list(result["advantages"][1]) == [1, 1]

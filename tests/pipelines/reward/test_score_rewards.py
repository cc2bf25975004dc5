"""Rewards through the node: terms, weights, what is not scored, and what cannot be gamed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agent_r1 import tables
from agent_r1.parameters import ParameterError
from agent_r1.pipelines.reward.nodes import score_rewards
from agent_r1.rewards import RewardParameters
from agent_r1.schemas import SchemaError
from tests.support.step_tables import rollouts, step, tasks

TASKS = tasks(q=["Paris"])
OUTCOME = {"terms": {"outcome": {}}}


def answer(trajectory: str, index: int, text: str = "Paris", **columns: Any) -> dict[str, Any]:
    columns = {"terminated": True, "end_reason": "answered"} | columns
    text = f"<answer>{text}</answer>"
    return step(trajectory, index, action_type="answer", action_text=text, **columns)


def score(*rows: dict[str, Any], **parameters: Any) -> pd.DataFrame:
    return score_rewards(rollouts(*rows), TASKS, parameters)


def components(table: pd.DataFrame) -> list[dict[str, float]]:
    return [json.loads(text) for text in table["components"]]


def test_by_default_a_right_answer_earns_one_and_a_well_formed_one_a_tenth() -> None:
    table = score(step("q/0", 0), answer("q/0", 1), answer("q/1", 0, "Rome"))
    assert table["reward"].tolist() == pytest.approx([0, 1.1, 0.1])
    assert table["trajectory_reward"].tolist() == pytest.approx([1.1, 1.1, 0.1])
    assert table["correct"].tolist() == [True, True, False]
    assert components(table)[1:] == [
        {"format": 0.1, "outcome": 1.0},
        {"format": 0.1, "outcome": 0.0},
    ]
    assert table.equals(tables.conform(table, "rewards"))


def test_components_are_weighted_and_sum_to_the_reward() -> None:
    terms = {
        "outcome": {"weight": 2.0, "metric": "f1"},
        "format": {"weight": 0.5, "malformed_penalty": 0.4},
        "environment": {"weight": 10.0},
    }
    table = score(
        step("q/0", 0, action_type="malformed", env_reward=0.3),
        step("q/0", 1, action_type="cut", env_reward=0.0),
        answer("q/0", 2, "Paris France", env_reward=-0.1),
        terms=terms,
    )
    expected = [
        {"environment": 3.0, "format": -0.2, "outcome": 0.0},
        {"environment": 0.0, "format": -0.2, "outcome": 0.0},
        {"environment": -1.0, "format": 0.5, "outcome": 4 / 3},
    ]
    for found, wanted in zip(components(table), expected, strict=True):
        assert found == pytest.approx(wanted, abs=1e-6)
    sums = [sum(row.values()) for row in components(table)]
    assert table["reward"].tolist() == pytest.approx(sums, abs=1e-6)
    assert table["correct"].tolist() == [False] * 3


def test_the_shaped_variant_pays_for_valid_calls_and_charges_for_failed_ones() -> None:
    def results(*statuses: str) -> str:
        return json.dumps([{"name": "search", "status": status} for status in statuses])

    table = score(
        step("q/0", 0, tool_results=results("ok", "ok")),
        step("q/0", 1, tool_results=results("ok", "bad_arguments", "unknown_tool")),
        step("q/0", 2, tool_results=results("unavailable")),
        answer("q/0", 3),
        terms={"outcome": {}, "tool_calls": {"valid_call": 0.1, "failed_call": -0.2}},
    )
    assert table["reward"].tolist() == pytest.approx([0.2, -0.3, 0, 1])
    assert table["trajectory_reward"].tolist() == pytest.approx([0.9] * 4)


@pytest.mark.parametrize(("tokens", "penalty"), [(80, 0), (90, -0.5), (100, -1), (110, -1)])
def test_the_overlong_punishment_counts_the_agents_own_tokens_once(tokens, penalty) -> None:
    table = score(
        step("q/0", 0, context=[1] * 500, action=[3] * 60),
        answer("q/0", 1, context=[1] * 500, action=[3] * (tokens - 60)),
        answer("q/1", 0, action=[3] * 5),
        terms={"overlong": {"max_length": 100, "buffer": 20, "weight": 2.0}},
    )
    assert table["reward"].tolist() == pytest.approx([0, 2 * penalty, 0], abs=1e-5)


def test_the_overlong_punishment_is_off_by_default() -> None:
    assert score(answer("q/0", 0, action=[3] * 5000))["reward"].tolist() == pytest.approx([1.1])


def test_p12_an_infrastructure_failure_is_not_scored_and_that_is_not_zero() -> None:
    failed = {"truncated": True, "end_reason": "infrastructure", "env_reward": None}
    table = score(step("q/0", 0), step("q/0", 1, **failed), answer("q/1", 0), **OUTCOME)
    assert table["reward"].isna().tolist() == [True, True, False]
    assert table["trajectory_reward"].isna().tolist() == [True, True, False]
    assert table["correct"].isna().tolist() == [True, True, False]
    assert components(table)[0] == {}


def test_p12_a_term_that_cannot_score_a_step_leaves_the_trajectory_unscored() -> None:
    rows = (step("q/0", 0, env_reward=None), answer("q/0", 1), answer("q/1", 0))
    table = score(*rows, terms={"environment": {}})
    assert table["trajectory_reward"].isna().tolist() == [True, True, False]
    assert score(*rows, **OUTCOME)["trajectory_reward"].tolist() == [1, 1, 1]


def test_p18_running_out_of_turns_earns_nothing_and_the_reward_lies_on_an_action() -> None:
    truncated = {"truncated": True, "end_reason": "max_steps"}
    table = score(
        step("q/0", 0, env_reward=-1.0),
        step("q/0", 1, env_reward=-1.0, final_token_ids=[7], **truncated),
        terms={"outcome": {}, "format": {}, "environment": {}},
    )
    assert table["reward"].tolist() == [-1, -1]
    assert table["trajectory_reward"].tolist() == [-2, -2]


def test_p21_an_answer_in_every_turn_earns_once() -> None:
    going_on = {"terminated": False, "end_reason": None}
    table = score(answer("q/0", 0, **going_on), answer("q/0", 1, **going_on), answer("q/0", 2))
    assert table["reward"].tolist() == pytest.approx([0, 0, 1.1])


def test_p21_the_last_answer_is_the_one_that_counts() -> None:
    going_on = {"terminated": False, "end_reason": None}
    table = score(answer("q/0", 0, **going_on), answer("q/0", 1, "Rome"), **OUTCOME)
    assert table["trajectory_reward"].tolist() == [0, 0]


@pytest.mark.parametrize("kind", ["cut", "malformed", "tool_call"])
def test_p10_only_an_answer_is_compared(kind: str) -> None:
    row = step("q/0", action_type=kind, action_text="<answer>Paris</answer>")
    assert score(row)["trajectory_reward"].tolist() == [0]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_p34_an_environment_reward_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(SchemaError, match="row 1: env_reward is"):
        score(step("q/0", 0), answer("q/0", 1, env_reward=value), terms={"environment": {}})


def test_without_an_outcome_term_nothing_is_called_correct() -> None:
    assert score(answer("q/0", 0), terms={"format": {}})["correct"].isna().all()


def test_a_term_that_is_null_is_off() -> None:
    terms = {"outcome": {}, "format": None}
    assert score(answer("q/0", 0), terms=terms)["reward"].tolist() == [1]


MIXTURE = {
    "terms": {"outcome": {}, "format": {}},
    "environments": {
        "game": {"terms": {"environment": {"weight": 2.0}, "format": None}},
        "silent": {"terms": {}},
        "absent": {"terms": {"overlong": {}}},
    },
}


def test_a_mixture_is_rewarded_by_environment() -> None:
    failed = {"truncated": True, "end_reason": "infrastructure"}
    table = score(
        step("q/0", 0, environment="qa", env_reward=None),  # no term of its environment reads it
        answer("q/0", 1, environment="qa"),
        step("q/1", 0, environment="game", env_reward=0.25),
        answer("q/1", 1, environment="game", env_reward=-1.0),
        answer("q/2", 0, environment="silent"),
        step("q/3", 0, environment="game", env_reward=None),
        step("q/4", 0, environment="game", env_reward=7.0, **failed),
        **MIXTURE,
    )
    assert table["reward"].tolist()[:5] == pytest.approx([0, 1.1, 0.5, -2.0, 0])
    assert table["trajectory_reward"].tolist()[:5] == pytest.approx([1.1, 1.1, -1.5, -1.5, 0])
    assert table["reward"].isna().tolist() == [False] * 5 + [True] * 2
    assert components(table) == [
        {"format": 0.0, "outcome": 0.0}, {"format": 0.1, "outcome": 1.0},
        {"environment": 0.5}, {"environment": -2.0}, {}, {}, {},
    ]  # fmt: skip
    # correct is for environments that have an outcome
    assert table["correct"].isna().tolist() == [False] * 2 + [True] * 5
    assert table["correct"].tolist()[:2] == [True, True]


def test_each_environment_of_a_mixture_is_rewarded_as_it_is_alone() -> None:
    rows = [answer(f"q/{i}", 0, environment="qa" if i % 3 else "game") for i in range(7)]
    table = score(*rows, **MIXTURE)
    for name, terms in (
        ("qa", MIXTURE["terms"]),
        ("game", MIXTURE["environments"]["game"]["terms"]),
    ):
        alone = score(*(row for row in rows if row["environment"] == name), terms=terms)
        part = table[[row["environment"] == name for row in rows]].reset_index(drop=True)
        assert part.equals(alone)


def test_a_row_of_a_mixture_is_named_by_its_place_in_the_table() -> None:
    bad = step("q/1", environment="game", tool_results="{}")
    with pytest.raises(SchemaError, match="row 1: tool_results"):
        score(
            step("q/0", environment="qa"),
            bad | {"tool_results": '{"status": 1}'},
            environments={"game": {"terms": {"tool_calls": {}}}},
        )


def test_parameters_come_back_from_what_is_recorded_of_them() -> None:
    read = RewardParameters.read(MIXTURE, "reward")
    recorded = read.model_dump(mode="json")
    assert recorded["environments"]["game"] == {
        "terms": {"environment": {"weight": 2.0, "cap": None}}
    }
    assert RewardParameters.read(recorded, "reward") == read


@pytest.mark.parametrize(
    ("environments", "message"),
    [
        ({"game": {"terms": {"outcom": {}}}}, "unknown reward term 'outcom'"),
        (
            {"game": {"terms": {"outcome": {"weigth": 1}}}},
            r"'reward.environments.game.terms.outcome.weigth'. Did you mean 'weight'",
        ),
        ({"game": {"term": {}}}, r"'reward.environments.game.term'. Did you mean 'terms'"),
        ({"game": {}}, r"'reward.environments.game.terms': Field required"),
        ({"game": {"terms": 1}}, r"'reward.environments.game.terms': must map names of terms"),
        ({"game": 1}, r"reward.environments.game"),
        ([], r"'reward.environments': Input should be a group of keys \(got \[\]\)"),
    ],
)
def test_bad_parameters_of_an_environment_are_named(environments: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        score(answer("q/0", 0), environments=environments)


def test_absent_nullable_columns_are_null() -> None:
    table = rollouts(answer("q/0", 0)).drop(columns=["env_reward", "observation", "end_reason"])
    assert score_rewards(table, TASKS, OUTCOME)["reward"].tolist() == [1]


def test_rows_may_stand_in_any_order() -> None:
    table = rollouts(step("q/0", 0), answer("q/0", 1), step("q/1", 0), answer("q/1", 1, "Rome"))
    expected = score_rewards(table, TASKS, {})
    order = np.array([2, 1, 3, 0])
    result = score_rewards(table.take(order).reset_index(drop=True), TASKS, {})
    assert result.equals(expected.take(order).reset_index(drop=True))


def test_a_task_that_is_missing_is_named() -> None:
    with pytest.raises(SchemaError, match="row 0: task 'other' is not in 'tasks'"):
        score(answer("other/0", 0))


def test_tool_results_that_are_no_results_are_named() -> None:
    with pytest.raises(SchemaError, match="row 0: tool_results is not a JSON list"):
        score(step("q/0", tool_results='{"status": 1}'), terms={"tool_calls": {}})


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"outcom": {}}, "unknown reward term 'outcom'. Did you mean 'outcome'"),
        ({"outcome": {"weigth": 1}}, "'reward.terms.outcome.weigth'. Did you mean 'weight'"),
        ({"outcome": {"metric": "em"}}, "reward.terms.outcome.metric"),
        ({"outcome": {"weight": float("nan")}}, "must be a finite number"),
        ({"overlong": {"max_length": 10, "buffer": 20}}, "buffer must not be larger than max"),
        ([], "must map names"),
    ],
)
def test_bad_parameters_are_named(terms: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        score(answer("q/0", 0), terms=terms)

"""Reward terms through the node: what each rewards, what earns nothing, weights and caps."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agent_r1.parameters import ParameterError
from agent_r1.pipelines.reward.nodes import score_rewards
from agent_r1.rewards.answers import numeric
from agent_r1.schemas import SchemaError
from tests.support.pages import DOCS, write_program
from tests.support.step_tables import rollouts, step, tasks

TASKS = tasks(q=["Paris"], n=["42"], e=[])


def answer(trajectory: str, index: int, text: str = "Paris", **columns: Any) -> dict[str, Any]:
    columns = {"terminated": True, "end_reason": "answered"} | columns
    columns.setdefault("action_text", f"<answer>{text}</answer>")
    return step(trajectory, index, action_type="answer", **columns)


def results(*contents: str, status: str = "ok") -> str:
    return json.dumps([{"name": "s", "status": status, "content": text} for text in contents])


def score(*rows: dict[str, Any], **terms: Any) -> pd.DataFrame:
    return score_rewards(rollouts(*rows), TASKS, {"terms": terms})


def rewards(*rows: dict[str, Any], **terms: Any) -> list[float]:
    return score(*rows, **terms)["reward"].tolist()


@pytest.mark.parametrize(
    ("said", "accepted", "value"),
    [
        ("42", "42", 1), ("42.0", "42", 1), (" $42 ", "42", 1), ("42 apples.", "42", 1),
        ("1,200.50", "1200.5", 1), ("-3", "3", 0), ("-3", "-3", 1), ("1/2", "0.5", 1),
        ("50%", "50", 1),
        ("4.2e1", "42", 1), ("42.00001", "42", 1), ("42.01", "42", 0), ("421", "42", 0),
        ("142", "42", 0), ("forty-two", "42", 0), ("", "42", 0), ("41 or 42", "42", 0),
        ("42, so 42", "42", 1), ("x42", "42", 0), ("1/0", "42", 0), ("1e999", "42", 0),
        ("\u221242", "42", 0), ("\u221242", "-42", 1),
        ("\uff0d\uff14\uff12", "-42", 1), ("-$42", "-42", 1),
        ("$-42", "-42", 1), ("-€1,200.5", "-1200.5", 1), (".5", "0.5", 1), ("-.5", "-1/2", 1),
        ("5-3", "2", 0), ("4\uff12", "42", 1), ("\u0664\u0662", "42", 1), ("1e400", "1e400", 0),
        ("42 or \u221242", "42", 0), ("1/42", "42", 0), ("." * 9, "0", 0), ("9" * 5000, "42", 0),
        ("42", "the answer is 42", 1), ("7", "none", 0), ("nan", "42", 0), ("0", "0", 1),
    ],
)  # fmt: skip
def test_p35_numbers_are_compared_by_value_and_several_are_wrong(said, accepted, value) -> None:
    assert numeric(said, [accepted]) == value


def test_numeric_is_an_outcome_with_a_tolerance() -> None:
    rows = answer("n/0", 0, "$42.00"), answer("n/1", 0, "43"), answer("n/2", 0, "many")
    table = score(*rows, outcome={"metric": "numeric"})
    assert table["reward"].tolist() == [1, 0, 0]
    assert table["correct"].tolist() == [True, False, False]
    loose = {"metric": "numeric", "tolerance": 0.05}
    assert rewards(*rows, outcome=loose) == [1, 1, 0]


def test_coverage_reads_the_structured_answer_and_correct_needs_all_parts() -> None:
    table = tasks(f=["Ann: 7; Bo: 8"], q=["Paris", "City of Light"])
    table["payload"] = ['{"answer": {"Ann": 7, "Bo": 8}}', ""]
    said = ("Ann 7, Bo 8", "Ann is 7", "none")
    rows = [answer(f"f/{number}", 0, text) for number, text in enumerate(said)]
    rows += [answer("q/0", 0, "the City of Light"), answer("q/1", 0, "Rome")]
    scored = score_rewards(rollouts(*rows), table, {"terms": {"outcome": {"metric": "coverage"}}})
    assert scored["reward"].tolist() == pytest.approx([1, 0.5, 0, 1, 0])
    assert scored["correct"].tolist() == [True, False, False, True, False]


def test_the_environments_reward_is_an_outcome() -> None:
    table = score(
        step("e/0", 0, env_reward=0.0), answer("e/0", 1, "code", env_reward=1.0),
        step("e/1", 0, env_reward=1.0), answer("e/1", 1, "code", env_reward=0.0),
        step("e/2", 0, env_reward=0.5, terminated=True, end_reason="environment"),
        answer("e/3", 0, env_reward=None),
        outcome={"metric": "environment", "weight": 2.0},
    )  # fmt: skip
    assert table["reward"].tolist()[:5] == [0, 2, 0, 0, 1]
    assert table["correct"].tolist()[:5] == [True, True, False, False, False]
    assert table["reward"].isna().tolist() == [False] * 5 + [True]  # p12: not scored is not 0


def test_length_costs_from_the_first_token() -> None:
    rows = step("q/0", 0, action=[3] * 30), answer("q/0", 1, action=[3] * 20)
    assert rewards(*rows, length={"tokens": 100, "weight": 0.5}) == pytest.approx([-0.15, -0.1])


def test_cost_has_prices_for_calls_and_tokens() -> None:
    rows = (
        step("q/0", 0, context=[1] * 500, action=[3] * 100, tool_results=results("a", "b")),
        answer("q/0", 1, context=[1] * 250, action=[3] * 10),
    )
    prices = {"tool_call": 0.1, "prompt_tokens": 0.2, "action_tokens": 1.0}
    # 2 * 0.1 + 0.5 * 0.2 + 0.1 * 1, and 0.25 * 0.2 + 0.01 * 1
    assert rewards(*rows, cost=prices) == pytest.approx([-0.4, -0.06])
    failed = step("q/1", 0, tool_results=results("x", status="timeout"))
    assert rewards(failed, cost={}) == pytest.approx([-0.01])


def test_repetition_counts_earlier_steps_of_the_trajectory() -> None:
    rows = (
        step("q/0", 0, action_text="a b c d e"),  # abc, bcd, cde: all new
        step("q/0", 1, action_text="a b c x"),  # abc again, bcx new
        answer("q/0", 2, action_text="a b c d e"),  # all repeated
        answer("q/1", 0, action_text="z z z z z"),  # zzz three times
        answer("q/2", 0, action_text="a b"),  # too short to repeat anything
    )
    wanted = [0, -1 / 2, -1, -2 / 3, 0]
    assert rewards(*rows, repetition={"words": 3}) == pytest.approx(wanted)


def test_repetition_in_chinese_counts_characters() -> None:
    rows = (
        step("q/0", 0, action_text="鲁迅出生于绍兴"),  # seven characters, four runs of four
        answer("q/0", 1, action_text="鲁迅出生在2008"),  # one of three is old
    )
    assert rewards(*rows, repetition={"words": 4}) == pytest.approx([0, -1 / 3])


FOUND = step("q/0", 0, tool_results=results("Rome", "The capital is Paris."))


def test_evidence_is_an_answer_that_a_tool_result_contains() -> None:
    assert rewards(FOUND, answer("q/0", 1), evidence={}) == [0, 1]
    assert rewards(FOUND, answer("q/0", 1, "the PARIS!"), evidence={}) == [0, 1]
    for said in ("London", "Par", "Rome The capital", ""):
        assert rewards(FOUND, answer("q/0", 1, said), evidence={}) == [0, 0]


def test_evidence_needs_a_successful_call_of_the_same_trajectory() -> None:
    said = step("q/0", 0, action_text="Paris", tool_results=results("Paris?", status="error"))
    assert rewards(said, answer("q/0", 1), evidence={}) == [0, 0]
    assert rewards(FOUND, answer("q/1", 0), evidence={}) == [0, 0]
    late = answer("q/0", 0, terminated=False, end_reason=None), step("q/0", 1, **_late())
    assert rewards(*late, evidence={}) == [0, 0]


def asked(*texts: str) -> str:
    return json.dumps([{"name": "s", "arguments": {"query": text}} for text in texts])


@pytest.mark.parametrize(
    ("calls", "contents", "value"),
    [
        (["capital of France"], ["The capital is Paris."], 1),
        (["Paris"], ["Paris\ncountry: France"], 0),  # the call asked for the span
        (["print('Paris')"], ["Paris"], 0),
        (["Paris", "capital"], ["Paris is a city", "It is Paris"], 1),  # by the second call
        (["capital", "Paris"], ["Rome", "Paris"], 0),
        (["Parisian"], ["A Parisian lives in Paris."], 1),
    ],
)
def test_evidence_is_not_a_span_that_the_call_asked_for(calls, contents, value) -> None:
    found = step("q/0", 0, tool_calls=asked(*calls), tool_results=results(*contents))
    assert rewards(found, answer("q/0", 1), evidence={}) == [0, value]


def test_evidence_may_be_in_the_shown_part_of_a_cut_result() -> None:
    cut = results("The capital is Paris.\n[cut: 21 of 90 characters]", status="oversized")
    found = step("q/0", 0, tool_calls=asked("capital"), tool_results=cut)
    assert rewards(found, answer("q/0", 1), evidence={}) == [0, 1]
    assert rewards(found, answer("q/0", 1, "90"), evidence={}) == [0, 0]


def test_evidence_may_be_asked_for_if_the_question_names_it() -> None:
    table = TASKS.assign(prompt="Is Paris or Rome the capital?")
    found = step("q/0", 0, tool_calls=asked("Paris"), tool_results=results("Paris: a capital"))
    scored = score_rewards(rollouts(found, answer("q/0", 1)), table, {"terms": {"evidence": {}}})
    assert scored["reward"].tolist() == [0, 1]


def test_evidence_in_chinese_is_found_by_characters() -> None:
    found = step("q/0", 0, tool_calls=asked("鲁迅"), tool_results=results("他出生于绍兴市。"))
    assert rewards(found, answer("q/0", 1, "绍兴"), evidence={}) == [0, 1]
    assert rewards(found, answer("q/0", 1, "绍市"), evidence={}) == [0, 0]
    echoed = found | {"tool_calls": asked("绍兴在哪里")}
    assert rewards(echoed, answer("q/0", 1, "绍兴"), evidence={}) == [0, 0]


def _late() -> dict[str, Any]:
    return {"tool_results": results("Paris"), "truncated": True, "end_reason": "max_steps"}


@pytest.mark.parametrize(
    ("turn", "value"),
    [
        ("<evidence>capital is Paris</evidence><answer>x</answer>", 1),
        ("<evidence>Rome</evidence> <evidence>Paris</evidence><answer>x</answer>", 1),
        ("<evidence>Rome</evidence> <evidence>London</evidence><answer>x</answer>", 0),
        ("<evidence> </evidence><answer>Paris</answer>", 0),
        ("<answer>Paris</answer>", 0),
    ],
)
def test_evidence_may_be_cited(turn: str, value: float) -> None:
    rows = FOUND, answer("q/0", 1, action_text=turn)
    assert rewards(*rows, evidence={"span": "evidence"}) == [0, value]


@pytest.mark.parametrize("term", ["cost", "evidence"])
def test_invalid_tool_results_are_an_error(term: str) -> None:
    broken = {"cost": "7", "evidence": '[{"status": "ok"}]'}[term]
    with pytest.raises(SchemaError, match="row 0: tool_results is not a JSON list"):
        score(step("q/0", tool_results=broken), **{term: {}})


def test_a_cap_bounds_a_terms_sum_over_a_trajectory() -> None:
    rows = [step("q/0", i, tool_results=results("a", "b")) for i in range(3)]
    other = step("q/1", 0, tool_results=results("a"))
    paid = {"valid_call": 0.1, "failed_call": 0.0, "weight": 1.0}
    table = score(*rows, answer("q/0", 3), other, tool_calls=paid | {"cap": 0.3}, outcome={})
    assert table["reward"].tolist() == pytest.approx([0.2, 0.1, 0, 1, 0.1])
    assert [json.loads(text)["tool_calls"] for text in table["components"]] == pytest.approx(
        [0.2, 0.1, 0, 0, 0.1]
    )
    free = score(*rows, answer("q/0", 3), other, tool_calls=paid, outcome={})
    assert free["reward"].tolist() == pytest.approx([0.2, 0.2, 0.2, 1, 0.1])


def test_a_cap_bounds_both_signs_and_lets_the_sum_return() -> None:
    good, bad = results("a", "b"), results("a", "b", "c", status="error")
    rows = [step("q/0", i, tool_results=r) for i, r in enumerate((good, bad, good, good, good))]
    # the running sum 0.2, -0.1, 0.1, 0.3, 0.5 kept within 0.25
    capped = {"valid_call": 0.1, "failed_call": -0.1, "cap": 0.25}
    assert rewards(*rows, tool_calls=capped) == pytest.approx([0.2, -0.3, 0.2, 0.15, 0])
    falling = [step("q/0", i, tool_results=bad) for i in range(2)]
    assert rewards(*falling, tool_calls=capped) == pytest.approx([-0.25, 0])


def test_a_cap_holds_within_a_trajectory_whatever_the_order_of_rows() -> None:
    rows = [step("q/0", i, tool_results=results("a", "b")) for i in range(3)]
    rows += [answer("q/1", 0, environment="other")]
    terms = {"terms": {"tool_calls": {"valid_call": 0.1, "cap": 0.3}}}
    parameters = {"terms": {}, "environments": {"toy": terms}}
    table = rollouts(*rows)
    order = np.array([2, 3, 0, 1])
    shuffled = score_rewards(table.take(order).reset_index(drop=True), TASKS, parameters)
    assert shuffled["reward"].tolist() == pytest.approx([0, 0, 0.2, 0.1])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"outcome": {"cap": 0}}, "reward.terms.outcome.cap"),
        ({"outcome": {"cap": -1.0}}, "reward.terms.outcome.cap"),
        ({"length": {"tokens": 0}}, "reward.terms.length.tokens"),
        ({"cost": {"tool_call": -1}}, "reward.terms.cost.tool_call"),
        ({"evidence": {"span": "x"}}, "reward.terms.evidence.span"),
        ({"judge": {}}, "reward.terms.judge.model': Field required"),
        ({"judge": {"model": "m", "prompt": "{x}"}}, "reward.terms.judge.prompt"),
        ({"nowhere:TERM": {}}, "reward term 'nowhere:TERM' cannot be imported"),
        ({"agent_r1.mdp:Action": {}}, "is not a Term"),
    ],
)
def test_bad_parameters_are_named(terms: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        score(answer("q/0", 0), **terms)


def test_a_term_that_is_null_is_off() -> None:
    table = score(answer("q/0", 0), outcome={}, format=None)
    assert json.loads(table["components"].iloc[0]) == {"outcome": 1.0}


def test_the_term_in_the_how_to_runs(monkeypatch, tmp_path) -> None:
    monkeypatch.syspath_prepend(write_program(DOCS / "add_a_reward_term.md", tmp_path).parent)
    rows = step("q/0", 0, action_text="Please search."), answer("q/0", 1)
    table = score(*rows, **{"politeness:TERM": {"weight": 0.05, "cap": 0.1}, "outcome": {}})
    assert table["reward"].tolist() == pytest.approx([0.05, 1.0])
    assert json.loads(table["components"].iloc[0]) == {"outcome": 0.0, "politeness:TERM": 0.05}
    assert rewards(*rows, **{"politeness:TERM": {"word": "search"}}) == [1, 0]

import json

import pandas as pd
import pytest

from agent_r1.pipelines.evaluation.metrics import attempt_outcomes, evaluation_table, tool_outcomes
from agent_r1.pipelines.reward.nodes import score_rewards
from tests.support.step_tables import rollouts, step, tasks


def attempt(task, greedy, exact, f1=None, steps=2, calls=1, errors=0, ret=None, family="a"):
    return {
        "split": "held_out",
        "family": family,
        "task_id": task,
        "greedy": greedy,
        "exact_match": exact,
        "f1": exact if f1 is None else f1,
        "steps": steps,
        "tool_calls": calls,
        "tool_errors": errors,
        "trajectory_return": exact if ret is None else ret,
    }


def test_p40_metrics_are_what_was_computed_by_hand():
    table = evaluation_table(
        pd.DataFrame(
            [
                attempt("t1", False, 1.0, steps=2, calls=1, errors=0, ret=1.1),
                attempt("t1", False, 0.0, f1=0.5, steps=4, calls=3, errors=1, ret=-0.1),
                attempt("t1", True, 1.0, steps=9, calls=9, errors=9, ret=9.0),
                attempt("t2", False, 0.0, steps=3, calls=2, errors=1, ret=0.0, family="b"),
                attempt("t2", False, 0.0, steps=3, calls=0, errors=0, ret=0.0, family="b"),
                attempt("t2", True, 0.0, steps=9, calls=9, errors=9, ret=9.0, family="b"),
            ]
        )
    )
    assert table["family"].isna().tolist() == [True, False, False]
    whole = table.iloc[0]
    assert whole["n"] == 2
    assert whole["exact_match"] == pytest.approx(1 / 4)
    assert whole["greedy_exact_match"] == pytest.approx(1 / 2)
    assert whole["f1"] == pytest.approx(1.5 / 4)
    assert whole["mean_steps"] == pytest.approx(12 / 4)  # the greedy attempts do not count
    assert whole["tool_error_rate"] == pytest.approx(2 / 6)
    assert whole["mean_return"] == pytest.approx(1.0 / 4)
    family = table[table["family"] == "a"].iloc[0]
    assert (family["n"], family["exact_match"]) == (1, 0.5)
    assert family["tool_error_rate"] == pytest.approx(1 / 4)


def test_what_could_not_be_scored_is_no_zero():
    table = evaluation_table(pd.DataFrame([attempt("t1", False, 1.0), attempt("t1", False, None)]))
    assert table["exact_match"].iloc[0] == 1.0
    assert table["mean_steps"].iloc[0] == 2.0
    assert pd.isna(table["greedy_exact_match"].iloc[0])


def test_without_any_call_no_call_failed():
    table = evaluation_table(pd.DataFrame([attempt("t1", False, 0.0, calls=0)]))
    assert table["tool_error_rate"].iloc[0] == 0.0


def test_p40_the_order_of_completion_changes_nothing():
    rows = [attempt(f"t{i}", False, i / 7, family="ab"[i % 2]) for i in range(8)]
    pd.testing.assert_frame_equal(
        evaluation_table(pd.DataFrame(rows)), evaluation_table(pd.DataFrame(rows[::-1]))
    )


def test_failed_calls_are_all_that_did_not_end_ok():
    results = [
        json.dumps([{"status": "ok"}, {"status": "timeout"}]),
        json.dumps([]),
        json.dumps([{"status": "unknown_tool"}]),
    ]
    assert tool_outcomes(results) == (3, 2)
    assert tool_outcomes([]) == (0, 0)


def test_p40_where_only_the_environment_can_tell_it_does():
    """A task without accepted answers is solved or not; an empty answer list matches nothing."""
    solved = {"action_type": "answer", "action_text": "x", "terminated": True}
    rows = rollouts(
        *(step(f"e/{i}", 0, **solved, env_reward=float(i == 0)) for i in range(2)),
        step("e/2", 0, **solved, env_reward=None),
        step("q/0", 0, **solved | {"action_text": "Paris"}, env_reward=0.0),
    )
    both = tasks(e=[], q=["Paris"])
    rewards = score_rewards(rows, both, {"terms": {"outcome": {"metric": "environment"}}})
    found = attempt_outcomes(rows, rewards, both, greedy_from=9)
    assert found["exact_match"].tolist()[:2] == found["f1"].tolist()[:2] == [1.0, 0.0]
    assert pd.isna(found["exact_match"][2])
    assert found["exact_match"][3] == 1.0  # by its accepted answer, as ever


def test_p40_numbers_are_compared_as_numbers_where_the_reward_does():
    """Without punctuation, "2.5" is "25" and "-4" is "4"; and "4.0" is not "4"."""
    said = {"a/0": "25", "a/1": "2.50", "b/0": "4", "b/1": "-4.0"}
    rows = rollouts(
        *(
            step(name, 0, action_type="answer", action_text=text, terminated=True)
            for name, text in said.items()
        )
    )
    both = tasks(a=["2.5"], b=["-4"])
    rewards = score_rewards(rows, both, {"terms": {"outcome": {"metric": "numeric"}}})
    found = attempt_outcomes(rows, rewards, both, greedy_from=9, by_reward={"toy"})
    assert found["exact_match"].tolist() == found["f1"].tolist() == [0, 1, 0, 1]
    as_texts = attempt_outcomes(rows, rewards, both, greedy_from=9, by_reward={"other"})
    assert as_texts["exact_match"].tolist() == [1, 0, 1, 0]

import json

import pytest

from agent_r1 import tables
from agent_r1.tasks.functions import NAMES, make_functions

SIZES = {"train": 200, "validation": 30, "in_domain": 30, "held_out": 30, "ood": 30}


@pytest.fixture(scope="module")
def tasks():
    return make_functions(SIZES, seed=1)[0]


def passes(code, tests):
    scope = {}
    try:
        exec(code, scope)
        exec(tests, scope)
    except (AssertionError, SyntaxError):
        return False
    return True


def test_it_is_a_table_of_tasks(tasks):
    tables.to_arrow(tasks, "tasks")
    assert tasks["split"].value_counts().to_dict() == SIZES
    assert tasks["prompt"].is_unique
    assert tasks["task_id"].is_unique


def test_the_script_passes_the_hidden_tests_and_its_mistakes_do_not(tasks):
    for task in tasks.to_dict("records"):
        payload = json.loads(task["payload"])
        (turn,) = payload["script"]
        assert passes(turn["answer"], payload["tests"])
        assert len(payload["mistakes"]) == 3
        assert not any(
            passes(turns[0]["answer"], payload["tests"]) for turns in payload["mistakes"]
        )


def test_p34_no_test_is_shown(tasks):
    assert not any("assert" in prompt or "==" in prompt for prompt in tasks["prompt"])
    assert all(len(answers) == 0 for answers in tasks["answers"])


def test_held_out_names_do_not_occur_in_training(tasks):
    names = {
        split: {name for name in NAMES if any(f"{name}(x)" in p.split() for p in part["prompt"])}
        for split, part in tasks.groupby("split")
    }
    assert names["held_out"]
    assert names["validation"]
    assert not (names["held_out"] | names["validation"]) & names["train"]
    assert not names["held_out"] & names["validation"]
    assert set(tasks.loc[tasks["split"] == "ood", "family"]) == {"times_plus", "times_minus"}

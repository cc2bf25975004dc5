import json

import pytest

from agent_r1 import tables
from agent_r1.parameters import ParameterError
from agent_r1.tasks import word_problems
from agent_r1.tasks.word_problems import FAMILIES, PEOPLE, THINGS, ProblemFamily, make_problems
from agent_r1.tools.arithmetic import calculate

SIZES = {"train": 400, "validation": 60, "in_domain": 60, "held_out": 60, "ood": 60}


@pytest.fixture(scope="module")
def tasks():
    return make_problems(SIZES, seed=1)[0]


def words(tasks, split):
    prompts = tasks.loc[tasks["split"] == split, "prompt"]
    return {word.strip("?.,") for prompt in prompts for word in prompt.split()}


def test_it_is_a_table_of_tasks(tasks):
    tables.to_arrow(tasks, "tasks")
    assert tasks["split"].value_counts().to_dict() == SIZES
    assert tasks["task_id"].is_unique
    assert tasks["prompt"].is_unique
    assert set(tasks["environment"]) == {"math"}


def test_the_script_solves_the_problem_and_its_mistakes_do_not(tasks):
    for task in tasks.to_dict("records"):
        payload = json.loads(task["payload"])
        *calls, last = payload["script"]
        values = [calculate(turn["call"]["arguments"]["expression"]) for turn in calls]
        assert values[-1] == last["answer"] == task["answers"][0]
        assert len(calls) == task["hops"]
        assert payload["mistakes"]
        assert all(turns[-1]["answer"] != last["answer"] for turns in payload["mistakes"])


def test_the_problem_states_every_number_of_the_first_expression(tasks):
    for task in tasks.to_dict("records"):
        first = json.loads(task["payload"])["script"][0]["call"]["arguments"]["expression"]
        numbers = [word for word in first.split() if word.isdigit()]
        assert len(numbers) == 2
        assert set(numbers) <= {word.strip("?.,") for word in task["prompt"].split()}


def test_answers_are_whole_and_positive(tasks):
    assert all(int(answers[0]) > 0 for answers in tasks["answers"])


def test_held_out_problems_share_no_person_and_no_thing_with_training(tasks):
    names = {*PEOPLE, *THINGS}
    trained = words(tasks, "train") & names
    assert len(trained) == 30  # three fifths of both
    for split in ("validation", "held_out"):
        assert words(tasks, split) & names
        assert not words(tasks, split) & trained
    assert not words(tasks, "validation") & words(tasks, "held_out") & names
    assert words(tasks, "in_domain") & names <= trained


def test_only_ood_has_two_operations(tasks):
    trained = {family.name for family in FAMILIES if family.trained}
    families = {split: set(part["family"]) for split, part in tasks.groupby("split")}
    assert families["ood"] == {"gain_and_loss", "groups_and_gain"}
    assert all(families[split] == trained for split in SIZES if split != "ood")


def test_the_seed_decides(tasks):
    assert make_problems(SIZES, seed=1)[0].equals(tasks)
    assert not make_problems(SIZES, seed=2)[0].equals(tasks)


def test_a_size_that_exceeds_the_number_of_problems_is_an_error(monkeypatch):
    few = ProblemFamily("gain", ("{a} + {b}",), ("{a} and {b}?",), (4, 4))
    monkeypatch.setattr(word_problems, "FAMILIES", (few,))
    assert len(make_problems({"train": 9}, seed=1)[0]) == 9
    with pytest.raises(ParameterError, match="train is 10, but only 9 different word problems"):
        make_problems({"train": 10}, seed=1)

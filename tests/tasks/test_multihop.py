"""The tasks from the shipped knowledge base: what the project claims about its splits."""

import itertools
import json

import pandas as pd
import pytest

from agent_r1.parameters import ParameterError
from agent_r1.tasks.knowledge_base import FOLDER
from agent_r1.tasks.multihop import build_tasks
from agent_r1.tasks.parameters import TasksParameters
from tests.support import REPOSITORY


@pytest.fixture(scope="module")
def tables():
    knowledge_base = [
        pd.read_parquet(REPOSITORY / FOLDER / f"{name}.parquet")
        for name in ("countries", "cities", "elements")
    ]
    tasks, documents = build_tasks(*knowledge_base, TasksParameters())
    payload = [json.loads(text) for text in tasks["payload"]]
    return tasks.assign(payload=payload), documents


@pytest.mark.slow
def test_every_evaluation_split_has_at_least_200_questions_of_all_its_families(tables):
    tasks, _ = tables
    sizes = tasks.groupby("split").size()
    assert (sizes[["validation", "in_domain", "held_out", "ood"]] >= 200).all()
    families = tasks.groupby("split")["family"].nunique()
    assert families["held_out"] == families["train"] == families["in_domain"] == 21
    assert families["ood"] == 11


def test_trained_splits_mix_hops_and_balance_families(tables):
    tasks, _ = tables
    for split in ("train", "validation", "in_domain", "held_out"):
        of_split = tasks[tasks["split"] == split]
        assert (of_split["hops"] == 1).mean() == pytest.approx(0.45, abs=0.01)
        for hops in (1, 2):
            counts = of_split[of_split["hops"] == hops].groupby("family").size()
            assert counts.min() >= 0.7 * counts.max(), (split, hops, counts)


def test_held_out_and_validation_entities_are_in_no_other_chain(tables):
    tasks, _ = tables
    entities = {
        split: {title for payload in rows["payload"] for title in payload["entities"]}
        for split, rows in tasks.groupby("split")
    }
    trained_on = entities["train"]
    assert not entities["held_out"] & trained_on
    assert not entities["validation"] & trained_on
    assert not entities["held_out"] & entities["validation"]
    assert entities["in_domain"] <= trained_on


def test_no_training_answer_is_a_page_that_a_held_out_question_asks_for(tables):
    tasks, _ = tables
    held_out = {
        title
        for payload in tasks.loc[tasks["split"] == "held_out", "payload"]
        for title in payload["entities"]
    }
    values = {
        payload["chain"][-1]["value"] for payload in tasks.loc[tasks["split"] == "train", "payload"]
    }
    assert not held_out & values


def test_no_question_is_in_two_splits(tables):
    tasks, _ = tables
    assert tasks["task_id"].is_unique
    assert tasks["prompt"].is_unique


def test_every_chain_can_be_read_off_the_corpus(tables):
    tasks, documents = tables
    pages = dict(zip(documents["title"], documents["text"], strict=True))
    assert len(pages) == len(documents) == 244 + 3963 + 118
    for answers, payload in zip(tasks["answers"], tasks["payload"], strict=True):
        chain = payload["chain"]
        for step, (title, line) in zip(chain, payload["supporting_facts"], strict=True):
            assert title == step["title"]
            assert pages[title].split("\n")[line] == f"{step['label']}: {step['value']}"
        for step, following in itertools.pairwise(chain):
            assert step["value"] == following["title"]
        assert chain[-1]["value"] == next(iter(answers))
        assert "context" not in payload


def test_pages_and_questions_are_short(tables):
    tasks, documents = tables
    assert max(text.count("\n") + 1 for text in documents["text"]) <= 12
    assert max(len(prompt.split()) for prompt in tasks["prompt"]) <= 20


def test_splits_do_not_depend_on_the_order_of_the_rows(countries, cities, elements):
    parameters = TasksParameters(
        held_out_countries=1, validation_countries=1, in_domain_fraction=0.3
    )
    tasks, _ = build_tasks(countries, cities, elements, parameters)
    shuffled, _ = build_tasks(
        countries[::-1], cities.sample(frac=1, random_state=0), elements, parameters
    )
    pd.testing.assert_frame_equal(tasks, shuffled)


def test_the_error_for_an_unknown_parameter_names_the_nearest_one():
    with pytest.raises(ParameterError, match=r"'tasks.held_out_country'.*'held_out_countries'"):
        TasksParameters.read({"held_out_country": 3}, "tasks")

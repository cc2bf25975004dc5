"""The scripted agent: correct episodes, and its three mistakes."""

import json
from collections import Counter

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.mdp import ActionType
from agent_r1.parameters import ParameterError
from agent_r1.tasks.demonstrations import (
    DemonstrationError,
    DemonstrationParameters,
    Encyclopedia,
    choose_tasks,
    training_entities,
    write_script,
)

PAGES = {
    "Aton": "country: Arland\npopulation: 5",
    "Bton": "country: Borland\npopulation: 6",
    "Arland": "capital: Aburg\ncurrency: Crown\nneighbours: Heldland, Borland",
    "Borland": "capital: Bburg\ncurrency: Crown",
    "Corland": "capital: Cburg\ncurrency: Thaler",
    "Heldland": "capital: Heldburg\ncurrency: Sixpence",
}
DOCUMENTS = pd.DataFrame(
    {"document_id": list(PAGES), "title": list(PAGES), "text": list(PAGES.values())}
)
TRAINED = ["Aton", "Bton", "Arland", "Borland", "Corland"]


def task(chain, answers, task_id="t", split="train", family="f"):
    steps = [{"title": t, "label": label, "value": v} for t, label, v in chain]
    payload = json.dumps({"chain": steps} if steps else {})
    return {
        "task_id": task_id,
        "split": split,
        "family": family,
        "answers": answers,
        "payload": payload,
    }


TWO_HOPS = task([("Aton", "country", "Arland"), ("Arland", "currency", "Crown")], ["Crown", "ARC"])
ONE_HOP = task([("Arland", "capital", "Aburg")], ["Aburg"])


@pytest.fixture(scope="module")
def encyclopedia():
    return Encyclopedia(DOCUMENTS, TRAINED)


def script(of, encyclopedia, seed, error_rate):
    turns = write_script(of, encyclopedia, DemonstrationParameters(error_rate=error_rate), seed)
    *searches, answer = (turn.action for turn in turns)
    assert answer.type is ActionType.ANSWER
    assert all(action.type is ActionType.TOOL_CALL for action in searches)
    return [action.tool_calls[0].arguments["query"] for action in searches], answer.answer


def test_a_correct_episode_follows_the_chain(encyclopedia):
    for seed in range(20):
        assert script(TWO_HOPS, encyclopedia, seed, 0.0) == (["Aton", "Arland"], "Crown")
        assert script(ONE_HOP, encyclopedia, seed, 0.0) == (["Arland"], "Aburg")


def test_the_agent_writes_what_it_read_before_it_acts(encyclopedia):
    def thoughts(of, seed, **parameters):
        turns = write_script(of, encyclopedia, DemonstrationParameters(**parameters), seed)
        return [turn.thought for turn in turns], turns[-1].action.answer

    assert thoughts(TWO_HOPS, 0, error_rate=0.0) == (
        ["", "country: Arland\n", "currency: Crown\n"],
        "Crown",
    )
    assert thoughts(ONE_HOP, 0, error_rate=0.0, thought="")[0] == ["", ""]
    for seed in range(100):  # an agent that makes a mistake writes what it wrongly read
        said, answer = thoughts(TWO_HOPS, seed, error_rate=1.0)
        assert said[0] == ""
        assert said[-1].endswith(f": {answer}\n")


@pytest.mark.parametrize("thought", ["{page}", "{0}", "{label"])
def test_a_thought_that_is_not_a_template_is_refused(thought):
    with pytest.raises(ParameterError, match=r"may hold \{label\} and \{value\}"):
        DemonstrationParameters.read({"thought": thought}, "demonstrations")


def test_all_three_mistakes_occur_and_no_others(encyclopedia):
    seen = Counter()
    for seed in range(300):
        queries, answer = script(TWO_HOPS, encyclopedia, seed, 1.0)
        assert answer not in TWO_HOPS["answers"]
        if queries == ["Aton"]:
            assert answer == "Arland"
            seen["early"] += 1
        elif queries == ["Aton", "Arland"]:
            assert answer == "Aburg"  # the neighbours must not be mentioned
            seen["attribute"] += 1
        else:
            # Borland has the same currency: only Corland leads to another answer.
            assert (queries, answer) == (["Aton", "Corland"], "Thaler")
            seen["entity"] += 1
    assert set(seen) == {"early", "attribute", "entity"}
    assert min(seen.values()) > 60


def test_a_one_hop_task_gets_another_mistake_than_an_early_answer(encyclopedia):
    for seed in range(100):
        queries, answer = script(ONE_HOP, encyclopedia, seed, 1.0)
        assert answer != "Aburg"
        assert len(queries) == 1


@given(seed=st.integers(0, 2**62), rate=st.floats(0, 1))
def test_held_out_entities_never_occur(seed, rate):
    encyclopedia = Encyclopedia(DOCUMENTS, TRAINED)
    for of in (ONE_HOP, TWO_HOPS):
        queries, answer = script(of, encyclopedia, seed, rate)
        assert "Held" not in " ".join([*queries, answer])


def test_the_error_rate_is_the_share_of_wrong_episodes(encyclopedia):
    wrong = sum(script(TWO_HOPS, encyclopedia, seed, 0.25)[1] != "Crown" for seed in range(2000))
    assert wrong / 2000 == pytest.approx(0.25, abs=0.03)


def test_a_script_depends_on_its_seed_alone(encyclopedia):
    scripts = [script(TWO_HOPS, encyclopedia, seed, 0.5) for seed in range(50)]
    fresh = Encyclopedia(DOCUMENTS, reversed(TRAINED))
    assert scripts == [script(TWO_HOPS, fresh, seed, 0.5) for seed in range(50)]


def table(*tasks):
    return pd.DataFrame(tasks)


def test_training_entities_are_those_of_training_chains():
    held_out = task([("Heldland", "capital", "Heldburg")], ["Heldburg"], "h", split="held_out")
    assert training_entities(table(TWO_HOPS, held_out)) == {"Aton", "Arland"}


def test_training_tasks_are_chosen_with_alternating_families():
    tasks = table(
        *(task([], [], f"a{n}", family="a") for n in range(10)),
        *(task([], [], f"b{n}", family="b") for n in range(3)),
        *(task([], [], f"h{n}", split="held_out") for n in range(10)),
    )
    chosen = choose_tasks(tasks, 6, seed=0)
    assert Counter(t["family"] for t, _ in chosen) == {"a": 3, "b": 3}
    assert {sample for _, sample in chosen} == {0}
    again = choose_tasks(tasks, 20, seed=0)
    assert [t["task_id"] for t, _ in again[:6]] == [t["task_id"] for t, _ in chosen]
    assert [sample for _, sample in again] == [0] * 13 + [1] * 7
    assert [t["task_id"] for t, _ in choose_tasks(tasks, 6, seed=1)] != [
        t["task_id"] for t, _ in chosen
    ]


def test_no_training_tasks_is_an_error():
    with pytest.raises(DemonstrationError, match="no task is in the split 'train'"):
        choose_tasks(table(task([], [], split="held_out")), 1, seed=0)


def test_the_error_names_a_task_without_a_chain(encyclopedia):
    with pytest.raises(DemonstrationError, match="task 'x' has neither a script nor a gold chain"):
        script(task([], ["yes"], "x"), encyclopedia, 0, 0.0)


def test_an_impossible_rate_is_refused():
    with pytest.raises(ParameterError, match=r"demonstrations\.error_rate"):
        DemonstrationParameters.read({"error_rate": 1.5}, "demonstrations")

import random

import pytest

from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.tasks.demonstrations import (
    DemonstrationError,
    DemonstrationParameters,
    Encyclopedia,
    training_entities,
    write_script,
)
from agent_r1.tasks.script import Turn, answer, call, choose_script, read_script
from agent_r1.tasks.word_problems import make_problems

PAYLOAD = {
    "script": [{**call("search", query="x"), "thought": "hm"}, answer("right")],
    "mistakes": [[answer("wrong")], [answer("bad")]],
}


def said(error_rate, payload=PAYLOAD, draws=200):
    draw = random.Random(0)
    return [choose_script(payload, error_rate, draw)[-1].action.answer for _ in range(draws)]


def test_turns_are_actions():
    search = ToolCall("search", {"query": "x"})
    assert read_script(PAYLOAD["script"]) == [
        Turn("hm", Action(ActionType.TOOL_CALL, "", tool_calls=(search,))),
        Turn("", Action(ActionType.ANSWER, "", answer="right")),
    ]


def test_mistakes_occur_at_the_configured_rate():
    assert set(said(0.0)) == {"right"}
    assert set(said(1.0)) == {"wrong", "bad"}
    assert 70 < said(0.5).count("right") < 130


def test_a_task_without_mistakes_is_always_played_correctly():
    assert set(said(1.0, {"script": PAYLOAD["script"]})) == {"right"}


TASK = {"task_id": "t", "split": "train", "answers": ["x"]}


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ('{"script": []}', "the script of task 't': expected a list of turns"),
        ('{"script": [{"reply": "x"}]}', "task 't': turn 0 is neither a call nor an answer"),
        ('{"script": [{"call": {"name": "x"}}]}', "turn 0 is neither"),
        ("{}", "task 't' has neither a script nor a gold chain.*set demonstrations.count to 0"),
    ],
)
def test_a_task_that_cannot_be_demonstrated_is_named(payload, message):
    tasks, documents = make_problems({"train": 1}, 1)
    encyclopedia = Encyclopedia(documents, training_entities(tasks))
    with pytest.raises(DemonstrationError, match=message):
        write_script(TASK | {"payload": payload}, encyclopedia, DemonstrationParameters(), 0)

"""The question-answering environment: it shows pages and never the answer."""

from __future__ import annotations

import asyncio
import json

import pandas as pd
import pytest

from agent_r1.environments import (
    EnvironmentParameters,
    Resources,
    check_environment,
    environment_class,
    make_environment,
    start,
    transition,
)
from agent_r1.environments.multihop_qa import MultihopQAEnv
from agent_r1.mdp import Action, ActionType, EndReason, EnvironmentFailure, ToolCall, ToolStatus
from agent_r1.parameters import ParameterError
from agent_r1.schemas import SchemaError

DOCUMENTS = pd.DataFrame(
    {
        "document_id": ["1", "2"],
        "title": ["France", "Paris"],
        "text": ["The capital of France is Paris.", "Paris lies on the Seine."],
    }
)
SECRET = "the-gold-answer"
TASK = {
    "task_id": "t",
    "prompt": "On which river does the capital of France lie?",
    "answers": [SECRET, "Seine"],
    "payload": json.dumps({"chain": [SECRET]}),
}
CONTEXT = {
    **TASK,
    "payload": json.dumps(
        {"context": [["Rhine", ["A river. ", "It is long."]], ["Seine", ["In Paris."]]]}
    ),
}


def begin(task=TASK, **options):
    env = make_environment("multihop_qa", task, Resources(DOCUMENTS), options)
    return env, asyncio.run(start(env))


def search(env, *queries):
    calls = tuple(ToolCall("search", {"query": query}) for query in queries)
    return asyncio.run(transition(env, Action(ActionType.TOOL_CALL, "…", tool_calls=calls)))


def test_an_episode():
    env, first = begin()
    assert first == {"question": TASK["prompt"]}
    step = search(env, "France")
    assert step.observation == {"tool_results": ["France\nThe capital of France is Paris."]}
    assert (step.reward, step.terminated) == (0.0, False)
    assert search(env, "Zzyzx").observation == {"tool_results": ["no page matches"]}
    step = asyncio.run(transition(env, Action(ActionType.ANSWER, "…", answer="Seine")))
    assert (step.reward, step.terminated, step.end_reason) == (0.0, True, EndReason.ANSWERED)


def test_results_of_parallel_searches_are_in_call_order():
    env, _ = begin()
    step = search(env, "Paris", "France")
    assert [text.split("\n")[0] for text in step.observation["tool_results"]] == ["Paris", "France"]


def test_options():
    env, _ = begin(top_k=2)
    assert search(env, "Paris").observation["tool_results"][0].startswith("[1] Paris\n")
    env, _ = begin(max_result_chars=5)
    step = search(env, "Paris")
    assert step.tool_results[0].status is ToolStatus.OVERSIZED
    assert step.observation["tool_results"][0].startswith("Paris\n[cut: 5 of")


def test_a_task_may_have_its_own_paragraphs():
    env, _ = begin(CONTEXT)
    assert search(env, "river").observation == {"tool_results": ["Rhine\nA river. It is long."]}
    assert search(env, "France").observation == {"tool_results": ["no page matches"]}


def test_broken_paragraphs_fail_the_environment_at_once():
    with pytest.raises(EnvironmentFailure):
        begin({**TASK, "payload": json.dumps({"context": [["only a title"]]})})


def test_p34_the_agent_never_sees_the_gold_answer():
    env, first = begin()
    told = [str(first), str([spec.schema for spec in env.tools])]
    for query in (SECRET, "answers", "task", "France", "gold answer", "chain"):
        told.append(str(search(env, query)))
    wrong = ToolCall("self.task", {"query": "x"}), ToolCall("search", {"answers": "x"})
    for call in wrong:
        action = Action(ActionType.TOOL_CALL, "…", tool_calls=(call,))
        told.append(str(asyncio.run(transition(env, action))))
    for answer in ("Seine", "Rhine"):
        action = Action(ActionType.ANSWER, "…", answer=answer)
        told.append(str(asyncio.run(transition(env, action))))
    assert not [text for text in told if SECRET in text]


def test_p34_right_and_wrong_answers_look_alike():
    steps = []
    for answer in ("Seine", "Rhine"):
        env, _ = begin()
        steps.append(asyncio.run(transition(env, Action(ActionType.ANSWER, "…", answer=answer))))
    assert steps[0] == steps[1]


def test_p36_two_environments_run_side_by_side():
    corpus, own = begin()[0], begin(CONTEXT)[0]

    async def both():
        calls = (ToolCall("search", {"query": "Seine"}),)
        action = Action(ActionType.TOOL_CALL, "…", tool_calls=calls)
        return await asyncio.gather(transition(corpus, action), transition(own, action))

    one, two = asyncio.run(both())
    assert one.observation == {"tool_results": ["Paris\nParis lies on the Seine."]}
    assert two.observation == {"tool_results": ["Seine\nIn Paris."]}


def test_the_index_is_shared_by_equal_corpora():
    assert Resources(DOCUMENTS).index is Resources(DOCUMENTS.copy()).index


def test_documents_are_checked():
    with pytest.raises(SchemaError, match="'text' is missing"):
        Resources(DOCUMENTS.drop(columns="text"))


def test_environments_are_found_by_name_and_import_path():
    assert environment_class("multihop_qa") is MultihopQAEnv
    path = "agent_r1.environments.multihop_qa:MultihopQAEnv"
    assert environment_class(path) is MultihopQAEnv


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("multihop", "unknown environment 'multihop'. Did you mean 'multihop_qa'"),
        ("no_such_module:Env", "environment 'no_such_module:Env' cannot be imported"),
        ("agent_r1.mdp:Nothing", "environment 'agent_r1.mdp:Nothing' cannot be imported"),
        ("agent_r1.mdp:Action", "is not a subclass of BaseEnv"),
    ],
)
def test_unknown_environments_are_refused_by_name(name, message):
    with pytest.raises(ParameterError) as caught:
        check_environment(EnvironmentParameters(name=name))
    assert message in str(caught.value)


def test_options_are_checked_before_any_episode():
    checked = check_environment(EnvironmentParameters(options={"top_k": 3}))
    assert (checked.top_k, checked.attempts) == (3, 3)
    with pytest.raises(ParameterError, match=r"'environment.options.topk'.*Did you mean 'top_k'"):
        check_environment(EnvironmentParameters(options={"topk": 3}))
    with pytest.raises(ParameterError, match=r"environment.options.top_k"):
        check_environment(EnvironmentParameters(options={"top_k": 0}))

"""The math environment: tools that compute, and nothing that tells the answer."""

from __future__ import annotations

import asyncio
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from agent_r1.environments import make_environment, start, transition
from agent_r1.mdp import Action, ActionType, EndReason, ToolCall, ToolStatus

TASK = {"task_id": "t", "prompt": "What is 3 * 9?", "answers": ["27"], "payload": "{}"}


def begin(task=TASK, **options):
    env = make_environment("math", task, None, options)
    return env, asyncio.run(start(env))


def act(env, name, **arguments):
    action = Action(ActionType.TOOL_CALL, "…", tool_calls=(ToolCall(name, arguments),))
    return asyncio.run(transition(env, action))


def say(env, text):
    return asyncio.run(transition(env, Action(ActionType.ANSWER, "…", answer=text)))


def test_an_episode():
    env, first = begin()
    assert first == {"question": TASK["prompt"]}
    step = act(env, "calculate", expression="3 * 9")
    assert (step.observation, step.reward) == ({"tool_results": ["27"]}, 0.0)
    step = say(env, "27")
    assert (step.reward, step.terminated, step.end_reason) == (0.0, True, EndReason.ANSWERED)


def test_a_mistake_in_an_expression_is_told_and_not_tried_again():
    step = act(begin()[0], "calculate", expression="9 ** 9 ** 9")
    (result,) = step.tool_results
    assert (result.status, result.attempts) == (ToolStatus.ERROR, 1)
    assert "too large" in step.observation["tool_results"][0]
    assert not step.terminated


def test_python_is_there_only_if_it_is_asked_for(monkeypatch):
    assert [spec.name for spec in begin()[0].tools] == ["calculate"]
    assert act(begin()[0], "python", program="1").tool_results[0].status is ToolStatus.UNKNOWN_TOOL
    env, _ = begin(python=True)
    assert [spec.name for spec in env.tools] == ["calculate", "python"]


@pytest.fixture
def sandbox(monkeypatch):
    """Stands for the sandbox: a program is its own output, and fails if it says so."""

    class Sandbox:
        def __init__(self, parameters):
            pass

        def run(self, program):
            failed = "raise" in program
            return SimpleNamespace(
                status="error" if failed else "ok", stdout=program, stderr="Traceback … boom"
            )

    module = ModuleType("agent_r1.tools.sandbox")
    module.Sandbox, module.SandboxParameters = Sandbox, SimpleNamespace
    monkeypatch.setitem(sys.modules, "agent_r1.tools.sandbox", module)


def test_a_programs_output_is_what_the_agent_reads(sandbox):
    env, _ = begin(python=True)
    assert act(env, "python", program="27").observation == {"tool_results": ["27"]}
    step = act(env, "python", program="raise")
    assert step.tool_results[0].status is ToolStatus.ERROR
    assert "boom" in step.observation["tool_results"][0]


def test_p34_right_and_wrong_answers_look_alike():
    assert say(begin()[0], "27") == say(begin()[0], "28")


def test_p34_the_answer_is_in_nothing_that_the_agent_gets():
    secret = TASK | {"answers": ["a-secret"], "payload": json.dumps({"script": "a-secret"})}
    env, first = begin(secret)
    told = [str(first), str([spec.schema for spec in env.tools])]
    for expression in ("answers", "self.task", "a", "1 + 1"):
        told.append(str(act(env, "calculate", expression=expression)))
    assert not [text for text in told if "a-secret" in text]

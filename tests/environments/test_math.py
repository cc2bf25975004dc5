"""The math environment: tools compute, and nothing reveals the answer."""

from __future__ import annotations

import asyncio
import json

from agent_r1.chat.code import code_tool, parse_turn
from agent_r1.environments import make_environment, start, transition
from agent_r1.mdp import Action, ActionType, EndReason, ToolCall, ToolStatus
from agent_r1.tools import tool
from tests.support import fake_sandbox

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


def test_a_mistake_in_an_expression_gives_an_error_and_is_not_retried():
    step = act(begin()[0], "calculate", expression="9 ** 9 ** 9")
    (result,) = step.tool_results
    assert (result.status, result.attempts) == (ToolStatus.BAD_ARGUMENTS, 1)
    assert "too large" in step.observation["tool_results"][0]
    assert not step.terminated


def test_python_is_a_tool_only_if_enabled():
    assert [spec.name for spec in begin()[0].tools] == ["calculate"]
    assert act(begin()[0], "python", code="1").tool_results[0].status is ToolStatus.UNKNOWN_TOOL
    env, _ = begin(python=True)
    assert [spec.name for spec in env.tools] == ["calculate", "python"]


def test_the_agent_also_has_the_tools_of_an_mcp_server(monkeypatch):
    @tool
    def look_up() -> str:
        """Look something up."""
        return "nothing"

    class Server:
        tools = (look_up,)

    monkeypatch.setattr("agent_r1.environments.base.connect", lambda name, at: Server)
    env, _ = begin(mcp={"wiki": {"url": "http://localhost"}})
    assert [spec.name for spec in env.tools] == ["calculate", "look_up"]


def test_the_chat_format_code_runs_its_blocks(monkeypatch):
    fake_sandbox.install(monkeypatch)
    env, _ = begin(python=True)
    turn = parse_turn("```python\n27\n```", code_tool(env.tools))
    assert asyncio.run(transition(env, turn)).observation == {"tool_results": ["27"]}


def test_a_programs_output_is_what_the_agent_reads(monkeypatch):
    fake_sandbox.install(monkeypatch)
    env, _ = begin(python=True, sandbox={"timeout_s": 3.0})
    assert act(env, "python", code="27").observation == {"tool_results": ["27"]}
    assert fake_sandbox.Sandbox.asked.timeout_s == 3.0
    step = act(env, "python", code="boom")
    assert step.tool_results[0].status is ToolStatus.BAD_ARGUMENTS
    assert "NameError: boom" in step.observation["tool_results"][0]
    step = act(env, "python", code="no sandbox")
    assert (step.reward, step.end_reason) == (None, EndReason.INFRASTRUCTURE)


def test_the_verifier_of_a_task_scores_the_answer(monkeypatch):
    monkeypatch.setattr(
        "agent_r1.tasks.reasoning_gym.score_answer", lambda verifier, said: verifier[said]
    )
    task = TASK | {"payload": json.dumps({"verifier": {"27": 1.0, "about 27": 0.5}})}
    assert say(begin(task)[0], "27").reward == 1.0
    assert say(begin(task)[0], "about 27").reward == 0.5
    assert act(begin(task)[0], "calculate", expression="27").reward == 0.0


def test_p34_right_and_wrong_answers_look_alike():
    assert say(begin()[0], "27") == say(begin()[0], "28")


def test_p34_the_agent_never_sees_the_answer():
    secret = TASK | {"answers": ["a-secret"], "payload": json.dumps({"script": "a-secret"})}
    env, first = begin(secret)
    told = [str(first), str([spec.schema for spec in env.tools])]
    for expression in ("answers", "self.task", "a", "1 + 1"):
        told.append(str(act(env, "calculate", expression=expression)))
    assert not [text for text in told if "a-secret" in text]

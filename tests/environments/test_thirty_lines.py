"""The README's example: a complete environment in at most thirty lines, including imports."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

from agent_r1.environments import make_environment, start, transition
from agent_r1.mdp import Action, ActionType, EndReason, ToolCall, ToolStatus

EXAMPLE = '''\
import ast
import operator

from agent_r1.environments import BaseEnv
from agent_r1.tools import BadArguments, tool

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def evaluate(node):
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](evaluate(node.left), evaluate(node.right))
    return ast.literal_eval(node)


class CalculatorEnv(BaseEnv):
    def reset(self):
        return {"question": self.task["prompt"]}

    @tool
    def calculate(self, expression: str) -> str:
        """Compute an expression such as 3 * (4 + 5)."""
        try:
            return str(evaluate(ast.parse(expression, mode="eval").body))
        except (SyntaxError, ValueError, KeyError, TypeError):
            raise BadArguments(f"{expression} is not arithmetic") from None

    async def step(self, action):
        right = action.answer in self.task["answers"]
        return await self.use_tools(action), float(right)
'''

TASK = {"task_id": "t", "prompt": "What is 3 * (4 + 5)?", "answers": ["27"], "payload": "{}"}


def calculator(folder: Path, monkeypatch):
    (folder / "calculator_example.py").write_text(EXAMPLE)
    monkeypatch.syspath_prepend(folder)
    assert importlib.util.find_spec("calculator_example") is not None
    return make_environment("calculator_example:CalculatorEnv", TASK)


def test_the_example_is_short_enough():
    assert len(EXAMPLE.splitlines()) <= 30


def test_the_example_is_a_complete_environment(tmp_path, monkeypatch):
    env = calculator(tmp_path, monkeypatch)
    assert asyncio.run(start(env)) == {"question": "What is 3 * (4 + 5)?"}
    (spec,) = env.tools
    assert spec.description == "Compute an expression such as 3 * (4 + 5)."
    assert spec.parameters["required"] == ["expression"]

    call = ToolCall("calculate", {"expression": "3 * (4 + 5)"})
    step = asyncio.run(transition(env, Action(ActionType.TOOL_CALL, "…", tool_calls=(call,))))
    assert (step.observation, step.reward, step.terminated) == (
        {"tool_results": ["27"]},
        0.0,
        False,
    )

    step = asyncio.run(transition(env, Action(ActionType.ANSWER, "…", answer="27")))
    assert (step.reward, step.terminated, step.end_reason) == (1.0, True, EndReason.ANSWERED)


def test_the_example_survives_its_agent(tmp_path, monkeypatch):
    env = calculator(tmp_path, monkeypatch)
    asyncio.run(start(env))
    call = ToolCall("calculate", {"expression": "__import__('os')"})
    step = asyncio.run(transition(env, Action(ActionType.TOOL_CALL, "…", tool_calls=(call,))))
    assert step.tool_results[0].status is ToolStatus.BAD_ARGUMENTS
    assert not step.terminated
    step = asyncio.run(transition(env, Action(ActionType.ANSWER, "…", answer="28")))
    assert (step.reward, step.terminated) == (0.0, True)

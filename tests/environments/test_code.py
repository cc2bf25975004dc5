"""The code environment: programs run in the sandbox, and the tests stay hidden."""

from __future__ import annotations

import asyncio
import json

import pytest

from agent_r1.chat.code import code_tool, parse_turn
from agent_r1.environments import make_environment, start, transition
from agent_r1.mdp import Action, ActionType, EndReason, ToolCall, ToolStatus
from agent_r1.parameters import ParameterError
from tests.support import fake_sandbox

TESTS = "assert twice(2) == 4"
PAYLOAD = {"tests": TESTS, "entry_point": None, "prelude": "import math"}
TASK = {"task_id": "t", "prompt": "Write twice(x).", "answers": [], "payload": json.dumps(PAYLOAD)}
RIGHT = "def twice(x):\n    return 2 * x"


@pytest.fixture
def judged(monkeypatch) -> list[dict]:
    """Replaces the sandbox by one without processes; returns the list of what it judged."""
    return fake_sandbox.install(monkeypatch)


def begin(**options):
    env = make_environment("code", TASK, None, options)
    return env, asyncio.run(start(env))


def act(env, **action):
    action = {"type": ActionType.ANSWER, "text": "…"} | action
    return asyncio.run(transition(env, Action(**action)))


def run(env, program):
    calls = (ToolCall("run", {"code": program}),)
    return act(env, type=ActionType.TOOL_CALL, tool_calls=calls)


def test_a_solution_that_passes_earns_one_and_ends_the_episode(judged):
    env, first = begin(sandbox={"timeout_s": 3.0})
    assert first == {"task": "Write twice(x)."}
    step = act(env, answer=RIGHT)
    assert (step.reward, step.terminated, step.end_reason) == (1.0, True, EndReason.ANSWERED)
    (call,) = judged
    assert call["solution"] == f"import math\n{RIGHT}"
    assert (call["tests"], call["entry_point"], call["prelude"]) == (TESTS, None, "import math")
    assert call["parameters"].timeout_s == 3.0


def test_a_solution_that_fails_earns_zero_and_ends_the_episode(judged):
    step = act(begin()[0], answer="def twice(x):\n    return x")
    assert (step.reward, step.terminated) == (0.0, True)


def test_the_code_block_of_an_answer_is_the_solution(judged):
    act(begin()[0], answer=f"Here it is:\n```python\n{RIGHT}\n```", code=RIGHT)
    assert judged[0]["solution"].endswith(RIGHT)


def test_the_chat_format_code_runs_its_blocks(judged):
    env, _ = begin()
    turn = parse_turn("```python\nprint(3)\n```", code_tool(env.tools))
    assert asyncio.run(transition(env, turn)).observation == {"tool_results": ["print(3)"]}


HEAD = 'def twice(x):\n    """ Twice x. """\n'


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        ("return 2 * x", "    return 2 * x"),
        ("y = 2 * x\n    return y", "    y = 2 * x\n    return y"),  # the first indentation is lost
        ("y = 2 * x\n\nreturn y", "    y = 2 * x\n\n    return y"),  # no indentation at all
        ("    return 2 * x\n", "    return 2 * x\n"),
        ("def twice(x):\n    return 2 * x", "def twice(x):\n    return 2 * x"),
        ("import math\ndef twice(x): return 2 * x", "import math\ndef twice(x): return 2 * x"),
        ("twice = lambda x: 2 * x", "twice = lambda x: 2 * x"),
    ],
)
def test_a_solution_may_be_only_the_body(judged, answer, program):
    payload = {"tests": "def check(f): ...", "entry_point": "twice", "prelude": HEAD}
    env = make_environment("code", TASK | {"payload": json.dumps(payload)})
    asyncio.run(start(env))
    act(env, answer=answer)
    assert judged[0]["solution"] == f"{HEAD}\n{program}"
    compile(judged[0]["solution"], "solution", "exec")


def test_a_program_can_be_tried_by_a_call_or_by_a_code_block(judged):
    env, _ = begin()
    assert run(env, "print(1)").observation == {"tool_results": ["print(1)"]}
    step = act(env, type=ActionType.MALFORMED, code="print(2)", error="no call and no answer")
    assert (step.observation, step.reward, step.terminated) == ({"output": "print(2)"}, 0.0, False)
    assert judged == []


def test_a_failing_program_gives_an_error_and_is_not_retried(judged):
    env, _ = begin()
    (result,) = run(env, "boom").tool_results
    assert (result.status, result.attempts) == (ToolStatus.BAD_ARGUMENTS, 1)
    assert "NameError: boom" in result.content
    step = act(env, type=ActionType.MALFORMED, code="boom")
    assert step.observation == {"error": "error: NameError: boom"}


@pytest.mark.parametrize("how", ["answer", "call", "block"])
@pytest.mark.parametrize(
    ("fault", "told"),
    [("no sandbox", "install bubblewrap"), ("broken sandbox", "the supervisor is gone")],
)
def test_p12_without_a_sandbox_nothing_is_scored(judged, how, fault, told):
    env, _ = begin()
    step = {
        "answer": lambda: act(env, answer=fault),
        "call": lambda: run(env, fault),
        "block": lambda: act(env, type=ActionType.MALFORMED, code=fault),
    }[how]()
    assert (step.reward, step.end_reason) == (None, EndReason.INFRASTRUCTURE)
    assert told in step.info["failure"]


def test_p12_tests_that_no_solution_can_pass_score_nothing(judged):
    step = act(begin()[0], answer="unusable tests")
    assert (step.reward, step.end_reason) == (None, EndReason.INFRASTRUCTURE)
    assert "the tests cannot be used" in step.info["failure"]


def test_unknown_limits_are_named():
    with pytest.raises(ParameterError, match=r"'environment.options.sandbox.timeout'.*'timeout_s'"):
        begin(sandbox={"timeout": 3.0})


def test_p34_the_agent_never_sees_the_tests(judged):
    env, first = begin()
    told = [str(first), str([spec.schema for spec in env.tools])]
    told += [str(run(env, text)) for text in ("open('tests')", "self.task", "boom")]
    told += [str(act(begin()[0], answer=text)) for text in (RIGHT, "x = 1", "")]
    assert not [text for text in told if "twice(2)" in text]


SAMPLE = {
    "task_id": "HumanEval/0",
    "prompt": 'def double(x: int) -> int:\n    """ Twice x. """\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solution", "reward"),
    [
        ("    return 2 * x\n", 1.0),  # only the body
        ("def double(x):\n    return x + x\n", 1.0),  # the whole function
        ("from __future__ import annotations\ndef double(x: int):\n    return x + x\n", 1.0),
        ("    return x\n", 0.0),
        ("    return 'no\n", 0.0),
        ("import os\nos._exit(0)\n", 0.0),
        ("", 0.0),
    ],
)
def test_humaneval_in_the_real_sandbox(tmp_path, solution, reward):
    from agent_r1.tasks.humaneval import load_humaneval

    path = tmp_path / "HumanEval.jsonl"
    path.write_text(json.dumps(SAMPLE))
    task = load_humaneval(path)[0].to_dict("records")[0]
    env = make_environment("code", task)
    asyncio.run(start(env))
    assert act(env, answer=f"```python\n{solution}```", code=solution).reward == reward


DOUBLE = {
    "task_id": 11,
    "text": "Write a function that multiplies by the factor.",
    "code": "def double(x):\n    return FACTOR * x",
    "test_setup_code": "import math\nFACTOR = 2",
    "test_list": ["assert math.isclose(double(3), 3 * FACTOR)"],
    "challenge_test_list": [],
}
NEEDS_THE_SOLUTION = {
    "test_setup_code": "root = Node(1)",
    "test_list": ["assert double(root) == 2"],
}
# The official file uses a class of the solution in two ways, and the name of a built-in.
PAIR = {
    "code": "class Pair(object):\n  def __init__(self, a, b):\n    self.a = a\n    self.b = b\n"
    "def double(arr, n):\n  return max(pair.b - pair.a for pair in arr) * n",
    "test_setup_code": "",
    "test_list": ["assert double([Pair(5, 24), Pair(15, 25)], 2) == 38"],
}
TREE = {
    "code": "class Node:\n  def __init__(self, v):\n    self.v = v\n    self.left = None\n"
    "def double(root):\n  return root.left.v * 2",
    "test_setup_code": "root = Node(1) \r\nroot.left = Node(3)",
    "test_list": ["assert (double(root)) == 6"],
}
SUM = {"code": "def sum(a,b): return 6", "test_list": ["assert sum(10,15) == 6"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "solution", "reward"),
    [
        (
            {},
            DOUBLE["code"],
            1.0,
        ),  # both solution and tests can use the definitions of the set-up code
        ({}, "FACTOR = 0\ndef double(x):\n    return 0", 0.0),
        ({"test_setup_code": "import no_such_module"}, DOUBLE["code"], None),
        (PAIR, PAIR["code"], 1.0),
        (PAIR, PAIR["code"].replace("self.b", "self.other").replace("pair.b", "pair.other"), 1.0),
        (PAIR, PAIR["code"].replace("- pair.a", ""), 0.0),
        (TREE, TREE["code"], 1.0),
        (TREE, TREE["code"].replace("root.left", "root"), 0.0),
        (SUM, SUM["code"], 1.0),
        (SUM, "def sum(a, b): return 5", 0.0),
        (NEEDS_THE_SOLUTION, "class Node: ...\ndef double(x):\n    return 2", None),
    ],
)
def test_mbpp_in_the_real_sandbox(tmp_path, changed, solution, reward):
    from agent_r1.tasks.mbpp import load_mbpp

    path = tmp_path / "mbpp.jsonl"
    path.write_text(json.dumps(DOUBLE | changed))
    task = load_mbpp(path)[0].to_dict("records")[0]
    env = make_environment("code", task)
    asyncio.run(start(env))
    step = act(env, answer=f"```python\n{solution}\n```", code=solution)
    assert step.reward == reward
    assert (step.end_reason is EndReason.INFRASTRUCTURE) == (reward is None)

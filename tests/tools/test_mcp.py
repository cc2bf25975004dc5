"""Tools of MCP servers, over both transports, against a real small server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_r1.environments import BaseEnv
from agent_r1.mdp import Action, ActionType, ToolCall, ToolStatus
from agent_r1.parameters import ParameterError
from agent_r1.tools import ToolParameters, ToolRuntime, tool
from agent_r1.tools.mcp import close_servers, connect
from agent_r1.tools.parameters import McpParameters

pytest.importorskip("mcp")

SERVER = str(Path(__file__).with_name("mcp_server.py"))
PATHS = ["PYTHONPATH"] if "PYTHONPATH" in os.environ else []
STDIO = {"command": [sys.executable, SERVER], "pass_environment": PATHS, "start_timeout_s": 300}


@pytest.fixture(scope="module")
def http():
    """The same server over HTTP."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, SERVER, str(port)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        time.sleep(0.05)
    yield {"url": f"http://127.0.0.1:{port}/mcp"}
    process.kill()
    process.wait()


@pytest.fixture(scope="module", params=["stdio", "http"])
def address(request):
    yield STDIO if request.param == "stdio" else request.getfixturevalue("http")
    close_servers()


def run(address, *calls, **parameters):
    server = connect("small", McpParameters.read(address, "environment.options.mcp.small"))
    runtime = ToolRuntime(server.tools, ToolParameters(**parameters))
    return asyncio.run(runtime.run([ToolCall(name, arguments) for name, arguments in calls]))


def test_the_schema_is_the_servers(address):
    server = connect("small", McpParameters.read(address, "mcp"))
    add = next(spec for spec in server.tools if spec.name == "add")
    assert add.description == "Add two numbers."
    assert add.parameters["properties"]["a"]["type"] == "integer"
    assert add.parameters["required"] == ["a"]


def test_calls_run_together_and_stand_in_call_order(address):
    results = run(address, ("add", {"a": 1}), ("add", {"a": 2, "b": 3}))
    assert [(one.status, one.content) for one in results] == [("ok", "2"), ("ok", "5")]


def test_bad_arguments_are_found_before_the_server_is_asked(address):
    missing, wrong = run(address, ("add", {}), ("add", {"a": "x"}))
    assert (missing.status, missing.attempts) == (ToolStatus.BAD_ARGUMENTS, 1)
    assert missing.content == "error: add: 'a' is a required property"
    assert wrong.content == "error: add: argument 'a': 'x' is not of type 'integer'"


def test_p31_an_error_of_the_tool_is_a_result_and_the_session_goes_on(address):
    failed, fine = run(address, ("refuse", {"why": "no such page"}), ("add", {"a": 1}), attempts=2)
    assert (failed.status, failed.attempts) == (ToolStatus.ERROR, 2)
    assert "no such page" in failed.content
    assert fine.content == "2"


def test_p31_a_call_that_never_returns_is_given_up_and_the_session_goes_on(address):
    (result,) = run(address, ("hang", {}), timeout_s=0.3, attempts=1)
    assert result.status is ToolStatus.TIMEOUT
    assert run(address, ("add", {"a": 1}))[0].content == "2"


def test_the_session_is_one_over_event_loops_until_the_server_dies_and_is_started_again():
    before, same = (run(STDIO, ("pid", {}))[0].content for _ in range(2))
    assert before == same
    (died,) = run(STDIO, ("die", {}), attempts=1)
    assert (died.status, died.content) == (
        "error",
        "error: die: the MCP server failed: MCPError: Connection closed",
    )
    after = run(STDIO, ("pid", {}))[0].content
    assert after != before
    close_servers()
    assert not Path(f"/proc/{after}/cmdline").exists()


def test_the_tools_are_an_environments_tools():
    class Plain(BaseEnv):
        def reset(self):
            return {"question": "?"}

        @tool
        def shout(self, word: str) -> str:
            """Say it loud."""
            return word.upper()

    env = Plain({"task_id": "t"}, options={"mcp": {"small": STDIO | {"tools": ["add"]}}})
    assert [spec.name for spec in env.tools] == ["shout", "add"]
    calls = (ToolCall("add", {"a": 41}), ToolCall("shout", {"word": "x"}))
    observation, _ = asyncio.run(env.step(Action(ActionType.TOOL_CALL, "", tool_calls=calls)))
    assert observation == {"tool_results": ["42", "X"]}
    close_servers()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ({"command": [sys.executable, "-c", "pass"]}, "the MCP server 'small' .* did not start"),
        ({"command": ["no-such-program"]}, "did not start: FileNotFoundError"),
        (STDIO | {"tools": ["subtract"]}, "has no tool 'subtract'. Known: add, die, hang"),
        ({}, "needs either `command` or `url`"),
        ({"url": "localhost:1/mcp"}, r"'environment\.options\.mcp\.small\.url': an address begins"),
        ({"commands": []}, "Did you mean 'command'"),
    ],
)
def test_what_cannot_work_is_said_before_any_work(address, message):
    with pytest.raises(ParameterError, match=message):
        connect("small", McpParameters.read(address, "environment.options.mcp.small"))

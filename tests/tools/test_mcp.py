"""Tools of MCP servers, over both transports, against a real small server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from agent_r1 import tables
from agent_r1.environments import BaseEnv, EnvironmentParameters, make
from agent_r1.mdp import Action, ActionType, ToolCall, ToolStatus
from agent_r1.parameters import ParameterError
from agent_r1.rollout.run import environment_factory
from agent_r1.tools import ToolParameters, ToolRuntime, tool
from agent_r1.tools.mcp import close_servers, connect
from agent_r1.tools.parameters import McpParameters
from tests.support import REPOSITORY, odd_mcp_server

pytest.importorskip("mcp")

SERVER = str(REPOSITORY / "tests/support/mcp_server.py")
PATHS = ["PYTHONPATH"] if "PYTHONPATH" in os.environ else []
ODD = {"command": [sys.executable, odd_mcp_server.__file__], "start_timeout_s": 300}
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


def test_results_of_parallel_calls_are_in_call_order(address):
    results = run(address, ("add", {"a": 1}), ("add", {"a": 2, "b": 3}))
    assert [(one.status, one.content) for one in results] == [("ok", "2"), ("ok", "5")]


def test_bad_arguments_are_found_before_the_server_is_called(address):
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


def test_event_loops_share_a_session_until_the_server_dies_and_restarts():
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


def test_an_environment_can_have_the_tools_of_a_server():
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


def test_p36_a_tool_of_the_environment_and_one_of_a_server_may_not_share_a_name():
    class Book(BaseEnv):
        @tool
        def page(self, number: int) -> str:
            """Turn to a page."""
            return str(number)

    def book(task):
        return Book(task, options={"mcp": {"odd": ODD}})

    with pytest.raises(ParameterError, match=r"'book' has two tools called 'page'.*mcp\.<server>"):
        make(book, {"task_id": "t", "environment": "book"})
    close_servers()


def test_the_servers_of_all_environments_of_a_mixture_are_started_before_any_trajectory():
    main = {"mcp": {"odd": ODD | {"tools": ["pid"]}}}
    other = {"mcp": {"small": ODD | {"tools": ["pid"]}}}
    parameters = EnvironmentParameters(name="multihop_qa", options=main, others={"math": other})
    factory = environment_factory(parameters, tables.empty("documents"))
    pids = set()
    for name in ("math", "multihop_qa"):
        env = make(factory, {"task_id": "t", "environment": name})
        action = Action(ActionType.TOOL_CALL, "", tool_calls=(ToolCall("pid", {}),))
        pids.add(asyncio.run(env.use_tools(action))["tool_results"][0])
    assert len(pids) == 2
    close_servers()
    other["mcp"]["small"] = {"command": ["no-such-program"]}
    parameters = EnvironmentParameters(name="multihop_qa", others={"math": other})
    with pytest.raises(ParameterError, match=r"the MCP server 'small' .* did not start"):
        environment_factory(parameters, tables.empty("documents"))


class Sessions(BaseHTTPRequestHandler):
    """A server over HTTP that remembers its sessions, as most do, and answers with their number."""

    known: ClassVar[list[str]] = []

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.headers.get("Mcp-Session-Id")
        if request["method"] == "initialize":
            session = f"session-{time.monotonic_ns()}"
            self.known.append(session)
        if session not in self.known:
            error = {"code": -32600, "message": "Session not found"}
            return self._answer(404, {"jsonrpc": "2.0", "id": "server", "error": error})
        if "id" not in request:
            return self._answer(202, None)
        reply = odd_mcp_server.reply(request)
        if request["method"] == "tools/call":
            reply["result"]["content"] = [odd_mcp_server.text(session)]
        return self._answer(200, reply, session)

    def _answer(self, status, body, session=None):
        sent = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(sent)))
        if session is not None:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(sent)

    def do_GET(self):
        self._answer(405, None)

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


def test_p31_a_restarted_server_that_does_not_know_the_session_gets_a_new_one():
    with ThreadingHTTPServer(("127.0.0.1", 0), Sessions) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = {"url": f"http://127.0.0.1:{server.server_port}/mcp"}
        (first,) = run(address, ("pid", {}))
        Sessions.known.clear()
        results = run(address, *[("pid", {})] * 8)
        close_servers()
        server.shutdown()
    assert first.content.startswith("session-")
    assert {one.status for one in results} == {ToolStatus.OK}
    assert {one.content for one in results} == set(Sessions.known)
    assert len(Sessions.known) == 1


def test_parts_of_a_result_that_are_not_text_become_notes():
    (result,) = run(ODD, ("page", {}))
    expected = ["the page", "[resource file:///b]", "[resource_link file:///c]", "[image]"]
    assert result.content.split("\n") == expected


def test_what_cannot_be_validated_here_is_left_to_the_server():
    results = run(ODD, ("pattern", {"a": "x"}), ("nowhere", {"a": "x"}))
    assert [one.content for one in results] == ["called", "called"]


def test_a_result_that_breaks_the_tools_own_schema_fails_its_call_only():
    before, broken, after = (run(ODD, (name, {}))[0] for name in ("pid", "promise", "pid"))
    assert broken.status is ToolStatus.ERROR
    assert "Invalid structured content" in broken.content
    assert after.content == before.content
    close_servers()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (
            ODD | {"command": [*ODD["command"], "broken"]},
            "'broken' with an invalid JSON schema: 'objekt'",
        ),
        ({"command": [sys.executable, "-c", "pass"]}, "the MCP server 'small' .* did not start"),
        ({"command": ["no-such-program"]}, "did not start: FileNotFoundError"),
        (STDIO | {"tools": ["subtract"]}, "has no tool 'subtract'. Known: add, die, hang"),
        ({}, "needs either `command` or `url`"),
        ({"url": "localhost:1/mcp"}, r"'environment\.options\.mcp\.small\.url': an address begins"),
        ({"commands": []}, "Did you mean 'command'"),
    ],
)
def test_settings_that_cannot_work_are_refused_on_connecting(address, message):
    with pytest.raises(ParameterError, match=message):
        connect("small", McpParameters.read(address, "environment.options.mcp.small"))

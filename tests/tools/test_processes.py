"""Isolated tools: calls in worker processes, and how the processes end."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_r1.mdp import ToolCall, ToolStatus
from agent_r1.tools import ToolParameters, ToolRuntime, tool
from agent_r1.tools.processes import PROCESSES, WorkerProcesses
from tests.support import isolated_tools


def run(*calls, **parameters):
    """Results of calls of the tools in `tests.support.isolated_tools`."""
    specs = [spec for name, spec in vars(isolated_tools).items() if hasattr(spec, "schema")]
    runtime = ToolRuntime([*specs, isolated_tools.Shelf.twice], ToolParameters(**parameters))
    return asyncio.run(runtime.run([ToolCall(name, arguments) for name, arguments in calls]))


def one(name, **arguments):
    (result,) = run((name, arguments))
    return result


def alive(pid: int) -> bool:
    """A zombie is not alive: it only waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(*pids: int) -> bool:
    deadline = time.monotonic() + 10
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not any(map(alive, pids))


def test_arguments_defaults_and_results_cross_as_json():
    assert (one("add", a=2).content, one("add", a=2, b=40).content) == ("3", "42")
    assert one("add_later", a=1).content == "2"
    assert one("double", n=4).content == "8"


def test_arguments_are_validated_before_a_process_gets_them():
    result = one("add", a="2")
    assert result.status is ToolStatus.BAD_ARGUMENTS


def test_a_healthy_process_is_reused_after_an_exception_and_on_another_loop():
    before = one("pid").content
    assert before != str(os.getpid())
    failed = one("give_up", what="no route")
    assert failed.content == "error: give_up: ConnectionError: no route"
    assert one("pid").content == before


def test_calls_of_an_action_run_side_by_side_with_results_in_call_order(tmp_path):
    folder = str(tmp_path)
    results = run(
        ("meet", {"folder": folder, "name": "a", "other": "b"}),
        ("meet", {"folder": folder, "name": "b", "other": "a"}),
    )
    assert [result.content for result in results] == ["a", "b"]


def test_what_a_tool_prints_or_reads_does_not_touch_the_connection():
    assert one("talk", text="hello \N{SNOWMAN}").content == "hello \N{SNOWMAN}"
    assert one("add", a=1).content == "2"


@pytest.mark.parametrize(("name", "answer"), [("forge", "honest"), ("fork", "parent")])
def test_p30_a_call_never_gets_the_answer_to_another_one(name, answer):
    assert one(name).content == answer
    for n in range(5):
        assert one("add", a=n).content == str(n + 1)


def test_p31_a_call_that_never_returns_is_killed_with_what_it_started(tmp_path):
    result = one("hang", file=str(tmp_path / "pids"))
    assert (result.status, result.attempts) == (ToolStatus.TIMEOUT, 1)
    assert result.content == "error: hang did not answer within 0.2 s"
    assert wait_until_gone(*map(int, (tmp_path / "pids").read_text().split()))
    assert one("add", a=1).content == "2"


def test_closing_kills_idle_and_busy_workers(tmp_path):
    workers, file = WorkerProcesses(limit=2), tmp_path / "pids"

    async def scenario():
        await workers.run(isolated_tools.pid.function, {}, 10, 100)
        busy = asyncio.ensure_future(
            workers.run(isolated_tools.hang.function, {"file": str(file)}, 60, 100)
        )
        while not (file.exists() and len(file.read_text().split()) == 2):
            await asyncio.sleep(0.005)
        workers.close()
        with pytest.raises(Exception, match="killed by SIGKILL"):
            await busy

    asyncio.run(scenario())
    assert wait_until_gone(*map(int, file.read_text().split()))


def test_time_for_imports_is_not_the_functions_time(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text(
        "import time; from agent_r1.tools import tool; time.sleep(0.6)\n"
        "@tool(isolated=True, attempts=1, timeout_s=0.5)\n"
        "def here() -> str:\n    'Here.'\n    return 'here'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    PROCESSES.close()
    spec = importlib.import_module("slow_to_import").here
    (result,) = asyncio.run(ToolRuntime([spec]).run([ToolCall("here", {})]))
    assert result.content == "here"


SCRIPT = """
import asyncio, sys, time
from agent_r1.mdp import ToolCall
from agent_r1.tools import ToolRuntime, tool


@tool(isolated=True)
def hello(name: str) -> str:
    '''Greet.'''
    import os, time
    if name == "forever":
        print(os.getpid(), file=sys.stderr, flush=True)
        time.sleep(600)
    return f"hello {name}"


if __name__ == "__main__":
    (result,) = asyncio.run(ToolRuntime([hello]).run([ToolCall("hello", {"name": sys.argv[1]})]))
    print(result.content)
"""


def script(folder: Path, name: str, **pipes) -> subprocess.Popen:
    (folder / "program.py").write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(folder / "program.py"), name], text=True, start_new_session=True,
        stdout=subprocess.PIPE, **pipes,
    )  # fmt: skip


def test_a_tool_may_be_defined_in_the_main_program(tmp_path):
    assert script(tmp_path, "you").communicate(timeout=60)[0] == "hello you\n"


def test_a_worker_ends_with_its_program_however_that_ends(tmp_path):
    program = script(tmp_path, "forever", stderr=subprocess.PIPE)
    worker = int(program.stderr.readline())
    program.kill()
    program.communicate()
    assert wait_until_gone(worker)


def test_an_isolated_tool_must_be_importable():
    def local(n: int) -> int:
        """Local."""
        return n

    with pytest.raises(TypeError, match="define it at the top level of a module"):
        tool(local, isolated=True)

    def method(self, n: int) -> int:
        """Method."""
        return n

    with pytest.raises(TypeError, match="cannot take `self`"):
        tool(method, isolated=True)

"""Honest programs in a sandbox: what they can do, what is reported, and when nothing runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_r1.parameters import ParameterError
from agent_r1.tools.sandbox import (
    Level,
    Sandbox,
    SandboxParameters,
    SandboxUnavailable,
    Status,
    isolation,
    run_tests,
)
from agent_r1.tools.sandbox import levels as levels_module

PATIENT_S = 120.0


def test_the_output_is_the_programs(level: Level, limits: SandboxParameters):
    program = "import sys\nprint(input() * 2)\nprint('ö', file=sys.stderr)"
    result = Sandbox(limits).run(program, stdin="ab")
    assert (result.status, result.exit_code) == (Status.OK, 0)
    assert (result.stdout, result.stderr) == ("abab\n", "ö\n")
    assert 0 < result.seconds < limits.timeout_s


def test_a_level_is_supported_or_the_reason_why_not(named_level: Level):
    """What is skipped here is not tested on this machine at all; `pytest -rs` shows why."""
    assert Sandbox(SandboxParameters(isolation=named_level)).run("print(1)").stdout == "1\n"


def test_files_are_there_and_can_be_imported(level: Level, limits: SandboxParameters):
    files = {"data/numbers.txt": "1 2 3", "helper.py": "def twice(x): return 2 * x"}
    program = """
import helper, os, tempfile
print(helper.twice(sum(map(int, open("data/numbers.txt").read().split()))))
with tempfile.NamedTemporaryFile("w+") as file: file.write("x"); print(file.seek(0))
os.mkdir("new"); open("/tmp/free", "w").close() if os.path.realpath("/tmp") == os.getcwd() else None
"""
    assert Sandbox(limits).run(program, files=files).stdout == "12\n0\n"


def test_the_standard_library_works(level: Level, limits: SandboxParameters):
    program = """
import asyncio, concurrent.futures, ctypes, dataclasses, decimal, json, sqlite3, subprocess
async def later(): return await asyncio.sleep(0.001, 7)
print(asyncio.run(later()))
print(subprocess.run(["/usr/bin/env", "printf", "x"], capture_output=True, text=True).stdout)
with concurrent.futures.ThreadPoolExecutor(4) as pool: print(sum(pool.map(abs, range(-4, 0))))
"""
    assert Sandbox(limits).run(program).stdout == "7\nx\n10\n"
    if level is not Level.RLIMITS:  # which has no folder for semaphores
        parallel = "import multiprocessing as m\nwith m.Pool(2) as p: print(p.map(abs, [-1, 2]))"
        assert Sandbox(limits).run(parallel).stdout == "[1, 2]\n"


def test_a_failure_is_reported(level: Level, limits: SandboxParameters):
    sandbox = Sandbox(limits)
    result = sandbox.run("import sys; sys.exit(3)")
    assert (result.status, result.exit_code) == (Status.ERROR, 3)
    result = sandbox.run("import os; os.abort()")
    assert (result.status, result.exit_code) == (Status.ERROR, -6)
    result = sandbox.run("1 +")
    assert result.status is Status.ERROR
    assert "SyntaxError" in result.stderr


def test_what_was_printed_before_the_time_limit_is_kept(level: Level, limits: SandboxParameters):
    short = limits.model_copy(update={"timeout_s": 2.0})
    result = Sandbox(short).run("import time\nprint('begun')\ntime.sleep(1e6)")
    assert (result.status, result.exit_code) == (Status.TIMEOUT, None)
    assert result.stdout in ("begun\n", "")  # a loaded machine may not get that far
    assert result.seconds >= 2.0


def test_processor_time_is_limited(level: Level, limits: SandboxParameters):
    result = Sandbox(limits.model_copy(update={"cpu_s": 1})).run("while True: pass")
    assert result.status is Status.TIMEOUT
    assert result.seconds < limits.timeout_s


def test_output_is_cut_at_characters(level: Level, limits: SandboxParameters):
    sandbox = Sandbox(limits.model_copy(update={"output_chars": 5}))
    assert sandbox.run("print('äöüß', end='')").status is Status.OK
    assert sandbox.run("print('äöüßé', end='')").stdout == "äöüßé"
    result = sandbox.run("print('äöüßéx', end='')")
    assert (result.status, result.stdout) == (Status.OUTPUT, "äöüßé")


def test_text_without_a_utf_8_form_does_not_break_it(level: Level, limits: SandboxParameters):
    result = Sandbox(limits).run("print(repr(input()), '\ud800')", stdin="a\ud800\0", files={})
    assert result.stdout == "'a?\\x00' ?\n"


def test_runs_are_the_same(level: Level, limits: SandboxParameters):
    program = "print({str(i) for i in range(50)}, hash('x'))"
    assert len({Sandbox(limits).run(program).stdout for _ in range(2)}) == 1


def test_runs_share_nothing(level: Level, limits: SandboxParameters):
    program = "import os; print(os.listdir('.')); open('left', 'w').close()"
    assert {Sandbox(limits).run(program).stdout for _ in range(2)} == {"['main.py']\n"}


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "", "a\0b"])
def test_files_stay_within_the_folder(name: str, level: Level, limits: SandboxParameters):
    with pytest.raises(ValueError, match="within the private folder"):
        Sandbox(limits).run("", files={name: ""})


def test_p31_nothing_is_left_when_the_caller_is_killed(level: Level, limits: SandboxParameters):
    killed = """
import os, signal, sys
from agent_r1.tools.sandbox import Level, SandboxParameters, launch
from agent_r1.tools.sandbox.process import Confined
parameters = SandboxParameters(isolation=sys.argv[1], timeout_s=600)
program = "import os, time; print('started'); os.fork(); time.sleep(1e6)"
confined = Confined(parameters.isolation, {"main.py": program}, parameters)
confined._process.stdout.read(7)
print(confined._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", killed, str(level)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENT_S).stdout
    # The first process of the sandbox ends after all others in it.
    gone = Path("/proc", said.strip())
    deadline = time.monotonic() + PATIENT_S
    while gone.exists() and "Z" not in gone.joinpath("stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert said.strip().isdigit()


def test_descriptors_are_given_back(level: Level, limits: SandboxParameters):
    sandbox = Sandbox(limits)
    sandbox.run("")
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        sandbox.run("print()")
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_unknown_parameters_are_named():
    with pytest.raises(ParameterError, match=r"sandbox\.memory'.*memory_mb"):
        SandboxParameters.read({"memory": 5}, "sandbox")


@pytest.fixture
def nothing_offered(monkeypatch: pytest.MonkeyPatch):
    """A machine without isolation."""

    def refuse(level: Level):
        raise SandboxUnavailable("not here")

    monkeypatch.setattr(levels_module, "probe", refuse)
    isolation.cache_clear()
    yield
    isolation.cache_clear()


def test_without_isolation_nothing_runs_unless_asked(nothing_offered: None):
    with pytest.raises(SandboxUnavailable, match=r"apt install bubblewrap.*isolation: none"):
        Sandbox()
    with pytest.raises(SandboxUnavailable, match="namespaces: not here"):
        run_tests("def f(): return 1", "assert f() == 1", entry_point="f")
    asked = SandboxParameters(isolation=Level.NONE, timeout_s=120)
    assert Sandbox(asked).run("print(1)").stdout == "1\n"
    assert run_tests(
        "def f(): return 1", "assert f() == 1", entry_point="f", parameters=asked
    ).passed


def test_without_landlock_rewards_are_refused_unless_asked(monkeypatch: pytest.MonkeyPatch):
    weak = levels_module.Isolation(Level.RLIMITS, hides_files=False)
    monkeypatch.setattr("agent_r1.tools.sandbox.verdict.isolation", lambda: weak)
    monkeypatch.setattr(levels_module, "isolation", lambda: weak)
    with pytest.raises(SandboxUnavailable, match="could read the tests"):
        run_tests("", "assert f() == 1", entry_point="f")


def test_an_unknown_level_is_named_once_with_the_known_ones():
    with pytest.raises(ParameterError) as caught:
        SandboxParameters.read({"isolation": "bublewrap"}, "sandbox")
    assert str(caught.value) == (
        "parameter 'sandbox.isolation': unknown level 'bublewrap'. Did you mean 'bubblewrap'? "
        "Known: auto, bubblewrap, namespaces, none, rlimits."
    )

"""Programs that attack the machine (`tests.support.attacks`), one after the other.

Pinned for each, at each level: what was tried has failed; the program ended in one of the ways that
are expected; nothing that it started is running afterwards; as a solution, it does not pass.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

import agent_r1
from agent_r1.tools.sandbox import Level, Sandbox, SandboxParameters, run_tests
from agent_r1.tools.sandbox.levels import probe
from tests.support.attacks import ATTACKS, CANARY, MARK, NEED_HIDDEN_FILES, PRELUDE, Attack


def left_running(before: set[int]) -> list[str]:
    """Processes of sandboxes that are new, that nobody else looks after, and that stay.

    For a moment there may be some of another test run on this machine, whose caller was killed.
    """
    found = orphans(before)
    deadline = time.monotonic() + 5.0
    while found and time.monotonic() < deadline:
        time.sleep(0.05)
        found &= orphans(before)
    return sorted(found)


def orphans(before: set[int]) -> set[str]:
    """Number and command of each."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ")
            # A name may be any bytes, and hostile programs use that.
            parent = int(Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            continue
        ours = any(sign.encode() in command for sign in ("-X utf8 main.py", "inside.start", MARK))
        if ours and int(name) not in before and parent in (1, os.getpid()):
            found.add(f"{name} {command!r}")
    return found


def processes() -> set[int]:
    """All processes that run now."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def limited(limits: SandboxParameters, attack: Attack) -> SandboxParameters:
    """``limits`` with the attack's own time."""
    if attack.timeout_s is None:
        return limits
    return limits.model_copy(update={"timeout_s": attack.timeout_s})


def program(attack: Attack) -> str:
    """The attack as a program."""
    return PRELUDE + textwrap.dedent(attack.source)


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch):
    """A file and a socket that anyone may use, in a folder that anyone may enter."""
    monkeypatch.setenv(CANARY, "canary")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder, "secret")
        path.write_text("the hidden tests")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(f"{path}.socket")
            os.chmod(f"{path}.socket", 0o777)
            yield path


UNTIL_STOPPED = (
    "deep recursion",
    "fork bomb of daemons",
    "starting itself again",
    "stopping itself",
    "thread bomb",
)
"""These use all of their time, as the fork bomb does; only that one runs every day."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in UNTIL_STOPPED else [])
        for name in ATTACKS
    ],
)
def test_it_is_contained(name: str, level: Level, limits: SandboxParameters, secret: Path):
    attack = ATTACKS[name]
    if name in NEED_HIDDEN_FILES and not probe(level).hides_files:
        pytest.skip("documented: without Landlock, level rlimits does not hide files")
    before = processes()
    places = json.dumps([str(secret), os.getpid(), str(Path(agent_r1.__file__).parent)])
    result = Sandbox(limited(limits, attack)).run(program(attack), stdin=places + "\n")
    assert left_running(before) == []
    assert "ESCAPED" not in result.stdout
    assert "attempt(" not in attack.source or "-" in result.stdout
    assert result.status in attack.statuses, result
    assert max(len(result.stdout), len(result.stderr)) <= limits.output_chars
    assert secret.read_text() == "the hidden tests"
    assert secret.stat().st_mode & 0o777 == 0o644


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_as_a_solution_it_does_not_pass(name: str, level: Level, limits: SandboxParameters):
    attack = ATTACKS[name]
    before = processes()
    # A solution's output is discarded, so an endless one uses all of its processor time.
    parameters = limited(limits, attack).model_copy(update={"cpu_s": 2})
    verdict = run_tests(program(attack), "assert f(2) == 4", entry_point="f", parameters=parameters)
    assert not verdict.passed
    assert left_running(before) == []


@pytest.mark.parametrize("visible", [True, False])
def test_what_rlimits_leaves_open(
    visible: bool, level: Level, limits: SandboxParameters, secret: Path
):
    """Documented: that a file exists can be seen at level ``rlimits``, and at no other."""
    path = secret if visible else secret.with_name("absent")
    result = Sandbox(limits).run(f"import os; print(os.path.exists({str(path)!r}))")
    assert result.stdout == f"{visible and level is Level.RLIMITS}\n"


def test_there_are_enough_attacks():
    assert len(ATTACKS) >= 30
    assert set(UNTIL_STOPPED) < set(ATTACKS)

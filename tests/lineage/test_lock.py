"""One writer at a time for an experiment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_r1.experiments.driver import run_experiment
from agent_r1.experiments.session import Session
from agent_r1.lineage.lock import LockedError, locked

_HOLDER = """
import sys, time
from pathlib import Path
from agent_r1.lineage.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder():
    """Starts a process that holds the lock of a folder; it is killed in the end."""
    started = []

    def start(folder: Path) -> subprocess.Popen:
        command = [sys.executable, "-c", _HOLDER, str(folder)]
        path = os.pathsep.join(sys.path)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_run_is_refused_and_told_who_holds_it(project, holder):
    process = holder(project.path / "data/08_reporting/x")
    with pytest.raises(LockedError) as caught:
        run_experiment(project.path, {"experiment": "x"})
    assert f"experiment 'x' is in use by process {process.pid} on " in str(caught.value)
    with pytest.raises(LockedError):
        Session(project.path, {"experiment": "x"}).run("prepare_tasks", ["prepare_tasks"])
    assert project.calls == []


def test_other_experiments_run_beside_it(project, holder):
    holder(project.path / "data/08_reporting/x")
    assert run_experiment(project.path, {"experiment": "y", "iterations": 0}).ran


def test_the_lock_of_a_killed_process_is_taken_over(project, holder):
    process = holder(project.path / "data/08_reporting/x")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run_experiment(project.path, {"experiment": "x", "iterations": 0}).ran


def test_a_process_may_hold_it_more_than_once(tmp_path, holder):
    with locked(tmp_path):
        with locked(tmp_path):
            pass
        with pytest.raises(AssertionError):  # the other process cannot have it yet
            holder(tmp_path)
    holder(tmp_path)


@pytest.mark.parametrize("crash", ["iter_00001/score_rewards", None])
def test_it_is_given_back_in_the_end(project, holder, crash):
    if crash:
        project.fail_at.add(crash)
        with pytest.raises(RuntimeError):
            run_experiment(project.path, {"experiment": "x", "iterations": 1})
    else:
        run_experiment(project.path, {"experiment": "x", "iterations": 1})
    holder(project.path / "data/08_reporting/x")

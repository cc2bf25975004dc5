"""Processes that start at once in a new project: different experiments run, the same is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.forked_runs import TIMEOUT
from tests.support.small_experiment import environment, make_project

pytestmark = pytest.mark.slow


def test_two_experiments_at_once_and_a_third_that_is_one_of_them(tmp_path):
    project = make_project(tmp_path)
    names = ["a", "b", "b"]
    command = [sys.executable, "-m", "kedro", "run", "--env", "faults", "--params"]
    started = [
        subprocess.Popen(
            [*command, f"experiment={name}"],
            cwd=project,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in names
    ]
    ended = [(process.communicate(timeout=TIMEOUT)[0], process.returncode) for process in started]
    outputs = dict(zip(["a", "first b", "second b"], ended, strict=True))
    assert outputs["a"][1] == 0, outputs["a"][0]
    refused, ran = sorted([ended[1], ended[2]], key=lambda end: end[1], reverse=True)
    assert (refused[1], ran[1]) == (1, 0), outputs
    holder = started[1 if ended[1] is ran else 2].pid
    assert f"experiment 'b' is in use by process {holder} on " in refused[0]
    assert "Traceback" not in refused[0]

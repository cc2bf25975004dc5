"""What was never committed is removed by the next run; what is anyone else's is not."""

from __future__ import annotations

import platform

import pytest

from agent_r1.experiments.driver import run_experiment
from tests.support.processes import dead_process
from tests.support.toy_experiment import finish_experiment

VERSION = "2026-01-01T00.00.00.000Z"


@pytest.fixture
def experiment(project):
    finish_experiment(project.path, 1)
    return project


def files(project) -> set[str]:
    return {path.relative_to(project.path).as_posix() for path in project.path.rglob("*")}


def test_leftovers_are_removed(experiment):
    before = files(experiment)
    rewards = experiment.path / "data/04_feature/x/iter_00001/rewards.parquet"
    half = rewards / VERSION / "rewards.parquet"
    policy = experiment.path / f"data/06_models/x/iter_00001/policy/{VERSION}/policy"
    new = experiment.path / f"data/04_feature/x/iter_00002/rewards.parquet/{VERSION}/.abc.part"
    for path in (half, policy / "model.safetensors", new, rewards / ".abc123.part"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    run_experiment(experiment.path, {"experiment": "x", "iterations": 1})
    left = files(experiment) - before
    assert left <= {"data/04_feature/x/iter_00002"}


def test_what_is_committed_and_what_is_not_ours_stays(experiment):
    mine = experiment.path / "data/04_feature/x/notes.txt"
    mine.write_text("mine")
    other = experiment.path / f"data/04_feature/other/iter_00001/rewards.parquet/{VERSION}"
    other.mkdir(parents=True)
    before = files(experiment)
    run_experiment(experiment.path, {"experiment": "x", "iterations": 1})
    assert files(experiment) >= before


def test_a_run_removes_abandoned_staging(experiment):
    dead = experiment.path / f"data/.staging/{platform.node()}.{dead_process()}/policy-1"
    dead.mkdir(parents=True)
    run_experiment(experiment.path, {"experiment": "x", "iterations": 1})
    assert not dead.parent.exists()

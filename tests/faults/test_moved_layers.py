"""The commands on an experiment called ``data``, below a folder ``data``, with all layers moved."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forked_runs import ForkedRuns
from tests.support.moved_layers import moved_catalog
from tests.support.small_experiment import SmallExperiments, environment, make_project

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Iterator[Path]:
    """On another disk than the project if this machine has one."""
    folder = tmp_path_factory.mktemp("elsewhere")
    memory = Path("/dev/shm")
    if os.access(memory, os.W_OK) and memory.stat().st_dev != folder.stat().st_dev:
        folder = Path(tempfile.mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def moved(tmp_path_factory, elsewhere) -> Iterator[SmallExperiments]:
    folder = tmp_path_factory.mktemp("x") / "data/me/agent-r1"
    folder.mkdir(parents=True)
    project = make_project(folder)
    entries = moved_catalog(project / "conf/base/catalog.yml", elsewhere)
    (project / "conf/faults/catalog.yml").write_text(entries)
    with ForkedRuns(environment()) as forked:
        experiments = SmallExperiments(project, forked)
        ended = experiments.run("data")
        assert ended.returncode == 0, ended.output
        yield experiments


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["verify"], "everything is as it was committed"),
        (["replay", "--iteration", "2"], "match"),
        (["rerun", "score_rewards", "--iteration", "2"], "same bytes"),
        (["rerun", "update_policy", "--iteration", "2"], "same bytes"),
        (["lineage", "rewards", "--iteration", "2", "--depth", "1"], "iter_00002.rewards"),
    ],
)
def test_a_command(moved, command, says):
    ended = moved.command(*command, "--experiment", "data")
    assert ended.returncode == 0, ended.output
    assert says in ended.output


def test_a_linked_layer_on_another_disk(moved, elsewhere):
    project = moved.project
    (project / "conf/faults/catalog.yml").unlink()
    (elsewhere / "models").mkdir()
    (project / "data/06_models").symlink_to(elsewhere / "models")
    ended = moved.run("linked")
    assert ended.returncode == 0, ended.output
    assert len(list((elsewhere / "models/linked").glob("iter_0000*/policy/*/policy"))) == 3
    assert moved.command("verify", "--experiment", "linked").returncode == 0
    assert moved.half_written("linked") == moved.staged() == []

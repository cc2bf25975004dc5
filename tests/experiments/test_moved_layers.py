"""An experiment keeps every promise wherever its layers are and whatever it is called."""

from __future__ import annotations

import pytest

from agent_r1.experiments.driver import run_experiment
from agent_r1.experiments.experiment import experiment_of
from agent_r1.experiments.rerun import Request, Rerunner
from agent_r1.experiments.session import Session
from agent_r1.kedro_adapter import new_version
from agent_r1.lineage.verify import verify
from tests.support.moved_layers import moved_catalog

UNUSUAL = ["plain", "data/me/agent-r1", "08_reporting/manifests"]
"""Folders of the project, some with names that mean something elsewhere."""


def opened(project, name: str):
    with Session(project.path, {"experiment": name}) as session:
        return experiment_of(session.catalog())


def load(project, name: str, dataset: str):
    with Session(project.path, {"experiment": name}) as session:
        return session.catalog().load(dataset)


def move_all_layers(project, elsewhere) -> None:
    local = project.path / "conf/local/catalog.yml"
    entries = moved_catalog(project.path / "conf/base/catalog.yml", elsewhere)
    local.write_text(local.read_text() + entries)


def everything_holds(project, name: str) -> None:
    """Run, finish, rerun aside and in a cascade, fork and verify the experiment ``name``."""
    run = {"experiment": name, "iterations": 2}
    project.fail_at.add("iter_00002/score_rewards")
    with pytest.raises(RuntimeError, match="told to fail"):
        run_experiment(project.path, run)
    project.fail_at.clear()
    project.calls.clear()
    assert "iter_00002.score_rewards" in run_experiment(project.path, run).ran
    assert "iter_00001.score_rewards" not in project.calls
    assert run_experiment(project.path, run).ran == []
    rerunner = Rerunner(opened(project, name))
    assert rerunner.rerun(Request("score_rewards", "1")).same_bytes
    other = {"reward": {"value": 5}}
    rerunner.rerun(Request("score_rewards", "2", overrides=other))
    assert load(project, name, "iter_00002.rewards")["reward"].tolist() == pytest.approx([0.2])
    rerunner.rerun(Request("score_rewards", "2", "cascade", overrides=other))
    assert load(project, name, "iter_00002.rewards")["reward"].tolist() == pytest.approx([5.2])
    fork = rerunner.rerun(Request("update_policy", "2", "fork")).experiment
    assert fork == f"{name}-fork1"
    for each in (name, fork):
        result = verify(opened(project, each))
        assert result.findings == []
        assert result.files > 40


@pytest.mark.parametrize("project", UNUSUAL, indirect=True)
@pytest.mark.parametrize("name", ["x", "data"])
def test_whatever_the_project_and_the_experiment_are_called(project, name):
    everything_holds(project, name)


@pytest.mark.parametrize("project", UNUSUAL[:2], indirect=True)
def test_all_layers_moved_out_of_the_project(project, tmp_path):
    elsewhere = tmp_path / "another disk/data/[1]"
    move_all_layers(project, elsewhere)
    everything_holds(project, "data")
    assert not list((project.path / "data").glob("0[2-8]_*"))
    record = opened(project, "data").current("iter_00002.policy").record
    assert record.path.startswith(str(elsewhere))


def test_what_a_crash_left_in_moved_layers_is_not_loaded_and_is_removed(project, tmp_path):
    move_all_layers(project, tmp_path / "elsewhere")
    run = {"experiment": "x", "iterations": 2}
    run_experiment(project.path, run)
    rewards = tmp_path / "elsewhere/04_feature/x/iter_00002/rewards.parquet"
    half = rewards / new_version() / "rewards.parquet"
    half.parent.mkdir()
    half.write_bytes(b"half")
    assert load(project, "x", "iter_00002.rewards")["reward"].tolist() == pytest.approx([0.2])
    run_experiment(project.path, run)
    assert not half.parent.exists()
    assert len(list(rewards.iterdir())) == 1


def test_one_layer_moved_by_an_entry_of_another_shape(project, tmp_path):
    local = project.path / "conf/local/catalog.yml"
    named = "${runtime_params:experiment,${globals:experiment}}"
    local.write_text(
        local.read_text() + '"{iteration}.rewards":\n'
        "  type: agent_r1.datasets.ArrowParquetDataset\n  versioned: true\n  schema: rewards\n"
        f"  filepath: {tmp_path}/rewards/{named}-{{iteration}}.parquet\n"
    )
    everything_holds(project, "x")
    kept = sorted(path.name for path in (tmp_path / "rewards").iterdir())
    assert kept == ["x-iter_00001.parquet", "x-iter_00002.parquet"]

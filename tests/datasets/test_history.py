"""The report's input: the newest committed tables of all iterations."""

from __future__ import annotations

import pytest
from kedro.io import DatasetError

from agent_r1.datasets import HistoryDataset
from agent_r1.experiments.driver import run_experiment
from agent_r1.experiments.session import Session
from agent_r1.lineage import ManifestStore


@pytest.fixture
def history(project) -> HistoryDataset:
    run_experiment(project.path, {"experiment": "x", "iterations": 2})
    return Session(project.path, {"experiment": "x"}).catalog()["history"]


def test_tables_of_all_iterations_in_order(history):
    loaded = history.load()
    assert list(loaded.iterations("rewards")) == ["iter_00001", "iter_00002"]
    assert list(loaded.iterations("evaluation")) == ["base", "iter_00000", "iter_00002"]
    rewards = loaded.tables["iter_00002.rewards"]
    assert rewards["reward"].astype(float).tolist() == [pytest.approx(0.2)]


def test_every_node_stands_once_with_its_newest_run(history, project):
    Session(project.path, {"experiment": "x"}).run("iter_00001", ["iter_00001.score_rewards"])
    runs = history.load().node_runs
    assert not runs.duplicated(["iteration", "node"]).any()
    row = runs[(runs["iteration"] == "iter_00001") & (runs["node"] == "score_rewards")].iloc[0]
    assert row["version"] == history.experiment.manifests.newest("iter_00001.score_rewards").version
    assert row["rows"] == 1
    assert (runs["seconds"] >= 0).all()


def test_what_has_no_manifest_is_not_history(history):
    for path in (history.experiment.manifests.root / "iter_00002/score_rewards").iterdir():
        path.unlink()
    assert list(history.load().iterations("rewards")) == ["iter_00001"]


def test_a_committed_table_that_is_gone_is_named(history, project):
    record = history.experiment.current("iter_00001.rewards").record
    (project.path / record.path).unlink()
    with pytest.raises(DatasetError, match=r"'iter_00001\.rewards' was committed, but .* is gone"):
        history.load()


def test_the_report_names_every_table_it_read(history):
    read = {record.dataset for record in history.experiment.manifests.newest("build_report").inputs}
    assert read == {*history.load().tables, "tasks", "demonstrations"}


def test_before_anything_ran_it_is_empty(tmp_path):
    history = HistoryDataset(filepath=str(tmp_path / "manifests"), tables=["rewards"])
    loaded = history.load()
    assert loaded.tables == {}
    assert loaded.node_runs.empty
    assert ManifestStore(tmp_path / "manifests").iterations() == []


def test_outside_the_catalog_it_finds_the_project_that_it_is_in(history, project, monkeypatch):
    monkeypatch.chdir(project.path / "src")
    folder = project.path / "data/08_reporting/x/manifests"
    alone = HistoryDataset(filepath=str(folder), tables=["rewards"])
    assert list(alone.load().iterations("rewards")) == ["iter_00001", "iter_00002"]
    assert alone.store.committed("iter_00001.rewards") is not None


def test_it_is_read_only(history):
    with pytest.raises(DatasetError, match="written by the runs"):
        history.save({})

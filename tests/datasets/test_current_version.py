"""Which version `catalog.load` gives outside of a run, as in a notebook."""

from __future__ import annotations

import pytest
from kedro.io import DatasetError

from agent_r1.experiments.rerun import Request, Rerunner
from agent_r1.experiments.session import Session
from agent_r1.lineage import ManifestStore
from tests.support.toy_experiment import finish_experiment, opened


@pytest.fixture
def experiment(project):
    finish_experiment(project.path, 2)
    project.store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    return project


def load(project, dataset: str, experiment: str = "x"):
    with Session(project.path, {"experiment": experiment}) as session:
        return session.catalog().load(dataset)


def test_the_current_version(experiment):
    assert load(experiment, "iter_00002.rewards")["reward"].tolist() == pytest.approx([0.2])
    policy = load(experiment, "iter_00002.policy")
    assert policy == experiment.path / experiment.store.committed("iter_00002.policy").record.path


def test_not_what_a_crash_left_behind(experiment):
    folder = experiment.path / "data/04_feature/x/iter_00002/rewards.parquet"
    (folder / "2999-01-01T00.00.00.000Z").mkdir()
    (folder / "2999-01-01T00.00.00.000Z/rewards.parquet").write_bytes(b"half")
    assert len(load(experiment, "iter_00002.rewards")) == 1


def test_not_what_stands_aside(experiment):
    request = Request("score_rewards", "2", overrides={"reward": {"value": 5}})
    aside = Rerunner(opened(experiment.path, "x")).rerun(request).version
    assert load(experiment, "iter_00002.rewards")["reward"].tolist() == pytest.approx([0.2])
    with Session(experiment.path, {"experiment": "x"}) as session:
        chosen = session.catalog().load("iter_00002.rewards", version=aside)
    assert chosen["reward"].tolist() == pytest.approx([5.2])


def test_what_a_fork_shares_is_found(experiment):
    Rerunner(opened(experiment.path, "x")).rerun(Request("score_rewards", "2", "fork", "y"))
    assert "/x/" in str(load(experiment, "iter_00001.policy", "y"))
    assert load(experiment, "iter_00001.rewards", "y").equals(
        load(experiment, "iter_00001.rewards")
    )


def test_what_was_never_committed_is_not_there(experiment):
    with pytest.raises(DatasetError, match=r"'iter_00009.rewards' is not committed"):
        load(experiment, "iter_00009.rewards")
    with Session(experiment.path, {"experiment": "x"}) as session:
        assert not session.catalog().exists("iter_00009.rewards")
        assert session.catalog().exists("iter_00002.rewards")

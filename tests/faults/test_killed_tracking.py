"""SIGKILL around MLflow's runs: what MLflow shows of the experiment is what happened.

Most kills are between what MLflow knows and what the experiment's own file says of it: a run was
created, and nobody noted its id; all nodes are done, and their run was not ended; a run ended, and
nobody noted that. The first one is a process that starts from nothing, as a user's. What is pinned:

1. After the run that finishes the experiment, none of MLflow's runs is RUNNING.
2. One parent has the parameters, and it is FINISHED.
3. Each stage ends with a child that is FINISHED; attempts before it are KILLED.
4. The parent has the curves of every iteration.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.forked_runs import Ended
from tests.support.small_experiment import SmallExperiments

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

pytestmark = pytest.mark.slow

STAGES = ("base", "iter_00000", "iter_00001", "iter_00002")

KILLS = (
    "kill:created:tracked",
    "kill:before:base.evaluate_policy",
    "kill:created:iter_00000",
    "kill:ended:iter_00001",
    "kill:committed:iter_00002.validate_policy",
    "kill:before:build_report",
    "kill:ending:tracked",
)
"""The parent's two ends, and one for each of its children: in its middle, before anybody knows of
it, after its end, and after its last node."""


@pytest.fixture(scope="module")
def killed(experiments: SmallExperiments) -> dict[str, Ended]:
    """Kill → how its run ended; the last run, which nothing killed, is at ``""``."""
    runs = {KILLS[0]: experiments.run_alone("tracked", KILLS[0])}
    runs |= {kill: experiments.run("tracked", kill) for kill in KILLS[1:]}
    return runs | {"": experiments.run("tracked")}


@pytest.fixture(scope="module")
def client(experiments: SmallExperiments, killed: dict[str, Ended]) -> MlflowClient:
    """Reads what the runs have left in MLflow's database."""
    from mlflow.tracking import MlflowClient

    assert killed[""].returncode == 0, killed[""].output
    return MlflowClient(f"sqlite:///{experiments.project}/mlflow.db")


@pytest.fixture(scope="module")
def parents(client: MlflowClient) -> list[Run]:
    """MLflow's runs that bear the experiment's name, oldest first."""
    return [run for run in _all_runs(client) if run.info.run_name == "tracked"]


@pytest.fixture(scope="module")
def children(client: MlflowClient, parents: list[Run]) -> list[Run]:
    """All runs below them, oldest first."""
    ids = {parent.info.run_id for parent in parents}
    return [r for r in _all_runs(client) if r.data.tags.get("mlflow.parentRunId") in ids]


def _all_runs(client: MlflowClient) -> list[Run]:
    (found,) = client.search_experiments(filter_string="name = 'agent-r1'")
    return list(client.search_runs([found.experiment_id], order_by=["start_time"]))


@pytest.mark.parametrize("kill", KILLS)
def test_the_kill_happened_at_its_point(killed: dict[str, Ended], kill: str):
    assert killed[kill].struck == kill, killed[kill].output
    assert killed[kill].returncode == -signal.SIGKILL


@pytest.mark.parametrize("name", ["tracked", *STAGES])
def test_no_run_is_running(parents: list[Run], children: list[Run], name: str):
    statuses = [r.info.status for r in (*parents, *children) if r.info.run_name == name]
    assert statuses
    assert "RUNNING" not in statuses


def test_there_is_one_parent_and_it_is_finished(parents: list[Run]):
    known = [parent for parent in parents if parent.data.params]
    assert [parent.info.status for parent in known] == ["FINISHED"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_ends_with_a_finished_child(children: list[Run], stage: str):
    statuses = [run.info.status for run in children if run.data.tags["stage"] == stage]
    assert statuses[-1] == "FINISHED"
    assert set(statuses[:-1]) <= {"KILLED"}


def test_the_parent_has_the_curve_of_every_iteration(client: MlflowClient, parents: list[Run]):
    history = client.get_metric_history(parents[-1].info.run_id, "reward/mean")
    assert [point.step for point in history] == [1, 2]

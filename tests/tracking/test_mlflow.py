"""MLflow: one parent per experiment, a child per attempt, curves by step and by iteration."""

from __future__ import annotations

import json

import pytest
from mlflow.tracking import MlflowClient

from agent_r1 import settings
from agent_r1.experiments.driver import run_experiment
from agent_r1.experiments.rerun import Request, Rerunner
from agent_r1.hooks import TrackingHooks
from agent_r1.lineage import ManifestStore
from agent_r1.tracking.mlflow import absolute_uri, as_params
from tests.support.toy_experiment import opened


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A tracking database; a new one takes seconds."""
    uri = f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"
    MlflowClient(uri).search_experiments()
    return uri


@pytest.fixture
def tracked(project, database):
    name = project.path.parent.name + project.path.name  # an MLflow experiment per test
    mlflow = {"enabled": True, "tracking_uri": database, "experiment_name": name}
    project.params = {"experiment": "x", "iterations": 2, "mlflow": mlflow}
    project.client = MlflowClient(database)

    def runs() -> dict[str, list]:
        experiment = project.client.get_experiment_by_name(name).experiment_id
        by_name: dict[str, list] = {}
        for run in project.client.search_runs([experiment], order_by=["start_time ASC"]):
            by_name.setdefault(run.info.run_name, []).append(run)
        return by_name

    def new_process() -> None:
        """Kedro keeps the hooks, and so their trackers, as long as the process lives."""
        for hooks in settings.HOOKS:
            if isinstance(hooks, TrackingHooks):
                hooks.__init__()

    new_process()
    project.runs, project.new_process = runs, new_process
    return project


def test_a_parent_and_a_child_per_iteration(tracked):
    run_experiment(tracked.path, tracked.params)
    runs = tracked.runs()
    assert set(runs) == {"x", "base", "iter_00000", "iter_00001", "iter_00002"}
    (parent,) = runs["x"]
    for name in ("base", "iter_00000", "iter_00001", "iter_00002"):
        (child,) = runs[name]
        assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert child.info.status == "FINISHED"
    assert parent.info.status == "FINISHED"
    assert parent.data.params["rollout.temperature"] == "1.0"


def test_metrics_by_step_in_the_child_and_by_iteration_in_the_parent(tracked):
    run_experiment(tracked.path, tracked.params)
    runs, client = tracked.runs(), tracked.client
    (child,), (parent,) = runs["iter_00002"], runs["x"]
    losses = client.get_metric_history(child.info.run_id, "update/loss")
    assert [(point.step, point.value) for point in losses] == [(0, 1.0), (1, 2.0)]
    curve = client.get_metric_history(parent.info.run_id, "reward/mean")
    points = [(point.step, pytest.approx(point.value)) for point in curve]
    assert points == [(1, 0.1), (2, 0.2)]
    held_out = client.get_metric_history(parent.info.run_id, "held_out/exact_match")
    assert [(point.step, pytest.approx(point.value)) for point in held_out] == [(0, 0.0), (2, 0.2)]


def test_the_child_names_the_versions_it_wrote(tracked):
    run_experiment(tracked.path, tracked.params)
    (child,) = tracked.runs()["iter_00001"]
    version = child.data.tags["kedro.run_id"]
    assert child.data.tags["dataset.iter_00001.rewards"] == version
    assert (
        tracked.path / f"data/04_feature/x/iter_00001/rewards.parquet/{version}/rewards.parquet"
    ).is_file()


def test_the_report_is_attached_to_the_parent(tracked):
    run_experiment(tracked.path, tracked.params)
    (parent,) = tracked.runs()["x"]
    files = {item.path for item in tracked.client.list_artifacts(parent.info.run_id)}
    assert files == {"learning_curves.png", "report.html", "summary.json"}


def test_a_failed_attempt_is_marked_and_the_next_is_another_child(tracked):
    tracked.fail_at.add("iter_00002/update_policy")
    with pytest.raises(RuntimeError, match="told to fail"):
        run_experiment(tracked.path, tracked.params)
    tracked.fail_at.clear()
    tracked.new_process()
    run_experiment(tracked.path, tracked.params)
    runs = tracked.runs()
    assert [run.info.status for run in runs["iter_00002"]] == ["FAILED", "FINISHED"]
    assert len(runs["x"]) == 1  # the resumed experiment continues its parent


@pytest.mark.slow
@pytest.mark.parametrize("complete", [True, False])
def test_an_attempt_that_was_killed_is_told_of_by_the_next_process(tracked, complete):
    """What it committed is on the curve once; it is KILLED unless it was all that it was to do."""
    run_experiment(tracked.path, tracked.params)
    (child,), (parent,) = tracked.runs()["iter_00002"], tracked.runs()["x"]
    for run in (child, parent):
        tracked.client.update_run(run.info.run_id, status="RUNNING")
    if not complete:
        store = ManifestStore(tracked.path / "data/08_reporting/x/manifests")
        store.current("iter_00002.update_policy").unlink()
    tracked.new_process()
    run_experiment(tracked.path, tracked.params | {"iterations": 3})
    statuses = [run.info.status for run in tracked.runs()["iter_00002"]]
    assert statuses[0] == ("FINISHED" if complete else "KILLED")
    assert statuses[1:] == ([] if complete else ["FINISHED"])  # what was still to be done
    assert tracked.runs()["x"][0].info.status == "FINISHED"
    curve = tracked.client.get_metric_history(parent.info.run_id, "reward/mean")
    assert [point.step for point in curve] == [1, 2, 3]


@pytest.mark.slow
def test_a_kill_after_the_last_result_is_settled_by_a_run_with_nothing_to_do(tracked):
    run_experiment(tracked.path, tracked.params)
    (parent,) = tracked.runs()["x"]
    tracked.client.update_run(parent.info.run_id, status="RUNNING")
    state = tracked.path / "data/08_reporting/x/mlflow.json"
    state.write_text(json.dumps(json.loads(state.read_text()) | {"open": True}))
    tracked.new_process()
    assert run_experiment(tracked.path, tracked.params).ran == []
    assert tracked.runs()["x"][0].info.status == "FINISHED"


@pytest.mark.slow
def test_a_parent_that_was_killed_before_its_id_was_kept_is_closed(tracked):
    run_experiment(tracked.path, tracked.params)
    (parent,) = tracked.runs()["x"]
    tracked.client.update_run(parent.info.run_id, status="RUNNING")
    (tracked.path / "data/08_reporting/x/mlflow.json").unlink()
    tracked.new_process()
    run_experiment(tracked.path, tracked.params | {"iterations": 3})
    assert [run.info.status for run in tracked.runs()["x"]] == ["KILLED", "FINISHED"]


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError, "FAILED"), (KeyboardInterrupt, "KILLED")]
)
def test_a_run_that_ends_early_is_not_left_running(tracked, monkeypatch, error, status):
    from tests.support import toy_experiment

    def stop(*_):
        raise error

    monkeypatch.setattr(toy_experiment, "_metrics", stop)
    with pytest.raises(error):
        run_experiment(tracked.path, tracked.params)
    runs = tracked.runs()
    assert runs["iter_00000"][0].info.status == runs["x"][0].info.status == status


def test_a_child_names_its_manifests(tracked):
    run_experiment(tracked.path, tracked.params)
    (child,) = tracked.runs()["iter_00001"]
    store = ManifestStore(tracked.path / "data/08_reporting/x/manifests")
    path = store.current("iter_00001.score_rewards")
    named = f"{store.name(path)} sha256:{store.read(path).seal}"
    assert child.data.tags["manifest.score_rewards"] == named
    assert "replaces" not in child.data.tags


def test_a_rerun_is_a_child_that_says_what_it_replaces(tracked):
    run_experiment(tracked.path, tracked.params)
    request = Request("score_rewards", "1", overrides={"reward": {"value": 5}})
    result = Rerunner(opened(tracked.path, "x")).rerun(request)
    first, again = tracked.runs()["iter_00001"]
    assert "aside" not in first.data.tags
    assert again.data.tags["kedro.run_id"] == result.version
    assert (again.data.tags["replaces"], again.data.tags["aside"]) == (result.replaces, "true")
    assert again.info.status == "FINISHED"
    (parent,) = tracked.runs()["x"]
    assert parent.info.status == "FINISHED"
    curve = tracked.client.get_metric_history(parent.info.run_id, "reward/mean")
    assert [point.step for point in curve] == [1, 2]  # what stands aside is not on the curve


@pytest.mark.slow
def test_a_rerun_with_the_same_result_adds_nothing_to_the_curve(tracked):
    run_experiment(tracked.path, tracked.params)
    Rerunner(opened(tracked.path, "x")).rerun(Request("score_rewards", "1"))
    (parent,) = tracked.runs()["x"]
    curve = tracked.client.get_metric_history(parent.info.run_id, "reward/mean")
    assert [point.step for point in curve] == [1, 2]
    Rerunner(opened(tracked.path, "x")).rerun(
        Request("score_rewards", "2", "cascade", overrides={"reward": {"value": 5}})
    )
    curve = tracked.client.get_metric_history(parent.info.run_id, "reward/mean")
    assert [point.step for point in curve] == [1, 2, 2]


@pytest.mark.slow
def test_a_fork_is_a_parent_that_says_where_it_comes_from(tracked):
    run_experiment(tracked.path, tracked.params)
    Rerunner(opened(tracked.path, "x")).rerun(Request("score_rewards", "2", "fork", "y"))
    (parent,) = tracked.runs()["y"]
    assert parent.data.tags["forked_from"] == "x"
    assert parent.info.status == "FINISHED"


@pytest.mark.slow
def test_a_deleted_database_gets_a_new_parent(tracked):
    run_experiment(tracked.path, tracked.params)
    state = tracked.path / "data/08_reporting/x/mlflow.json"
    state.write_text(json.dumps({"parent": "0" * 32, "open": False}))
    tracked.new_process()
    run_experiment(tracked.path, tracked.params | {"iterations": 3})
    assert len(tracked.runs()["x"]) == 2


def test_nothing_is_tracked_when_it_is_off(project):
    run_experiment(project.path, {"experiment": "x", "iterations": 1})
    assert not (project.path / "mlflow.db").exists()
    assert not (project.path / "data/08_reporting/x/mlflow.json").exists()


def test_a_relative_database_is_below_the_project(tmp_path):
    assert absolute_uri("sqlite:///mlflow.db", tmp_path) == f"sqlite:///{tmp_path}/mlflow.db"
    assert absolute_uri("sqlite:////data/m.db", tmp_path) == "sqlite:////data/m.db"
    assert absolute_uri("http://server", tmp_path) == "http://server"


def test_parameters_are_flattened_and_cut():
    nested = {"rollout": {"temperature": 1.0, "stop": {}}, "text": "x" * 600}
    flat = as_params(nested)
    assert flat["rollout.temperature"] == "1.0"
    assert flat["rollout.stop"] == "{}"
    assert len(flat["text"]) == 500

"""Many Kedro runs in one session."""

from __future__ import annotations

import pytest

from agent_r1.experiments.session import Session
from agent_r1.lineage import ManifestStore


def test_many_runs_in_one_session_each_with_its_own_version(project):
    with Session(project.path, {"experiment": "x"}) as session:
        session.run("prepare_tasks", ["prepare_tasks"])
        session.run("prepare_tasks", ["prepare_tasks"])
    store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    assert len(store.paths("prepare_tasks")) == 2
    assert project.calls == ["prepare_tasks"] * 2


def test_only_the_named_nodes_run(project):
    with Session(project.path, {"experiment": "x"}) as session:
        session.run("base", ["base.import_policy"])
    assert project.calls == ["base.import_policy"]


def test_runtime_parameters_reach_paths_and_nodes(project):
    session = Session(project.path, {"experiment": "elsewhere", "rollout": {"temperature": 2.0}})
    catalog = session.catalog()
    assert "/03_primary/elsewhere/" in str(catalog["tasks"]._filepath)
    # Soft merge: the other keys of the group survive an override.
    assert catalog.load("parameters")["rollout"] == {"temperature": 2.0, "top_p": 1.0}
    assert catalog.load("parameters")["iterations"] == 3


def test_an_error_in_a_node_comes_through(project):
    project.fail_at.add("/prepare_tasks")
    with pytest.raises(RuntimeError, match="told to fail"):
        Session(project.path, {"experiment": "x"}).run("prepare_tasks", ["prepare_tasks"])


def test_iterations_are_found_by_name(project):
    session = Session(project.path, {})
    names = {node.name for node in session.pipeline("iter_00042").nodes}
    assert "iter_00042.update_policy" in names
    with pytest.raises(KeyError):
        session.pipeline("iter_42")

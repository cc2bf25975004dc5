"""What a run leaves behind, and what it reads: through Kedro, with toy nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_r1.experiments.driver import run_experiment
from agent_r1.experiments.session import Session
from agent_r1.lineage import LineageError, ManifestStore
from agent_r1.lineage.provenance import code_version
from agent_r1.storage import hashing
from tests.support.toy_experiment import finish_experiment


@pytest.fixture
def experiment(project):
    """A toy experiment of two iterations, and its manifests."""
    finish_experiment(project.path, 2)
    project.store = ManifestStore(project.path / "data/08_reporting/x/manifests")
    project.session = Session(project.path, {"experiment": "x"})
    project.calls.clear()
    return project


def test_a_manifest_says_what_was_read_and_written(experiment):
    manifest = experiment.store.newest("iter_00002.update_policy")
    assert manifest.experiment == "x"
    assert manifest.seed == 0
    assert {record.dataset for record in manifest.inputs} == {
        "iter_00000.policy", "iter_00001.policy", "iter_00001.critic", "iter_00001.trainer_state",
        "iter_00001.controllers", "iter_00002.rollouts", "iter_00002.logprobs",
        "iter_00002.advantages", "iter_00002.preferences",
    }  # fmt: skip
    assert {record.dataset.partition(".")[2]: record.rows for record in manifest.outputs} == {
        "policy": None, "critic": None, "trainer_state": None, "controllers": None,
        "update_metrics": 2,
    }  # fmt: skip
    assert manifest.parameters["params:model"] == {"path": "data/01_raw/base"}  # a default
    assert manifest.parameters["params:seed"] == 0
    assert manifest.libraries["kedro"].startswith("1.7")
    assert len(manifest.code["source_sha256"]) == 64


def test_a_file_of_ones_own_beside_the_package_is_code_too(tmp_path):
    def recorded() -> str:
        code_version.cache_clear()
        return code_version(tmp_path)["source_sha256"]

    (tmp_path / "src").mkdir()
    without = recorded()
    (tmp_path / "src/games.py").write_text("REWARD = 1\n")
    with_it = recorded()
    (tmp_path / "src/games.py").write_text("REWARD = 2\n")
    assert len({without, with_it, recorded()}) == 3
    code_version.cache_clear()


def test_every_recorded_hash_is_that_of_the_file(experiment):
    records = [
        record
        for _, manifest in experiment.store.all()
        for record in (*manifest.inputs, *manifest.outputs)
    ]
    assert len(records) > 60
    for record in records:
        assert hashing.content_sha256(experiment.path / record.path) == record.sha256, record


def test_manifests_chain_to_the_raw_data(experiment):
    store, todo, raw = experiment.store, ["iter_00002.policy"], set()
    while todo:
        for record in store.read(store.committed(todo.pop()).manifest).inputs:
            if record.manifest is None:
                raw.add(record.path)
                continue
            assert store.read(store.root / record.manifest).seal == record.manifest_sha256
            todo.append(record.dataset)
    assert {Path(path).stem for path in raw} == {"countries", "cities", "elements", "memory"}


def test_only_volatile_places_hold_times(experiment):
    """No table or checkpoint knows when, where, or for which experiment it was made."""
    run_experiment(experiment.path, {"experiment": "other", "iterations": 2})
    other = ManifestStore(experiment.path / "data/08_reporting/other/manifests")
    hashes = [
        {record.dataset: record.sha256 for _, m in store.all() for record in m.outputs}
        for store in (experiment.store, other)
    ]
    named = ("summary", "report_html", "learning_curves_figure")
    assert {k: v for k, v in hashes[0].items() if k not in named} == {
        k: v for k, v in hashes[1].items() if k not in named
    }


def test_a_rerun_reads_its_own_iteration_and_the_one_before(experiment):
    """Flat versioned names would read iteration 2's own policy here."""
    node = "iter_00001.update_policy"
    before = experiment.store.newest(node)
    experiment.session.run("iter_00001", [node])
    after = experiment.store.newest(node)
    assert after.version > before.version
    assert after.inputs == before.inputs
    assert [o.sha256 for o in after.outputs] == [o.sha256 for o in before.outputs]


def test_a_file_without_a_manifest_is_never_read(experiment):
    committed = experiment.store.committed("iter_00002.rewards")
    stray = experiment.path / committed.record.path.replace(committed.version, "9999")
    stray.parent.mkdir()
    stray.write_bytes(b"left behind by a crash")
    experiment.session.run("iter_00002", ["iter_00002.compute_advantages"])
    read = experiment.store.newest("iter_00002.compute_advantages").inputs
    assert committed.version in {record.version for record in read}


def test_a_missing_input_is_named_with_its_command(experiment):
    with pytest.raises(LineageError) as caught:
        experiment.session.run("iter_00004", ["iter_00004.compute_advantages"])
    lines = str(caught.value).splitlines()
    assert (
        "'iter_00004.rewards' is not yet committed; make it with: kedro run --pipelines iter_00004"
        " --nodes iter_00004.score_rewards --params experiment=x"
    ) in lines
    assert len(lines) == 4  # with logprobs, and the controllers of the iteration before
    assert experiment.calls == []


def test_a_failing_node_leaves_no_manifest(experiment):
    experiment.fail_at.add("iter_00002/compute_advantages")
    before = len(list(experiment.store.all()))
    with pytest.raises(RuntimeError, match="told to fail"):
        experiment.session.run("iter_00002", ["iter_00002.compute_advantages"])
    assert len(list(experiment.store.all())) == before


def test_an_output_that_cannot_be_saved_commits_none_of_the_node(experiment, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("agent_r1.datasets.strict_json.write_json", full)
    before = experiment.store.newest("iter_00002.update_policy").version
    with pytest.raises(Exception, match="No space left on device"):
        experiment.session.run("iter_00002", ["iter_00002.update_policy"])
    assert experiment.store.newest("iter_00002.update_policy").version == before
    policy = experiment.store.committed("iter_00002.policy")
    assert policy.version == before  # the new policy is on the disk, and not committed


def test_manifests_are_strict_json(experiment):
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    for path, _ in experiment.store.all():
        json.loads(path.read_text(), parse_constant=refuse)

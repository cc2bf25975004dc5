"""Manifests on disk, and what they commit."""

from __future__ import annotations

import dataclasses

import pytest

from agent_r1.hashing import file_sha256
from agent_r1.lineage import LineageError, Manifest, ManifestStore, OutputRecord, iteration_of


def manifest(node: str, version: str, *outputs: str) -> Manifest:
    records = tuple(OutputRecord(name, version, "0" * 64, f"data/{name}", 3) for name in outputs)
    return Manifest(
        experiment="x",
        node=node,
        version=version,
        inputs=(),
        outputs=records,
        parameters={"params:reward": {"weight": 1.0}},
        seed=0,
        code={"commit": None, "dirty": None},
        libraries={"python": "3.11"},
        device="cpu",
        started_at="2026-01-01T00:00:00+00:00",
        ended_at="2026-01-01T00:00:01+00:00",
        seconds=1.0,
    )


@pytest.fixture
def store(tmp_path) -> ManifestStore:
    return ManifestStore(tmp_path / "manifests")


def test_a_manifest_comes_back(store):
    written = manifest("iter_00003.score_rewards", "v1", "iter_00003.rewards")
    path = store.write(written)
    assert path == store.root / "iter_00003/score_rewards/v1.json"
    assert store.read(path) == written
    assert written.iteration == "iter_00003"
    assert written.stage == "score_rewards"


def test_nodes_outside_iterations_have_a_folder_of_their_own(store):
    path = store.write(manifest("prepare_tasks", "v1", "tasks", "documents"))
    assert path == store.root / "experiment/prepare_tasks/v1.json"
    assert iteration_of("tasks") == "experiment"
    assert store.iterations() == []


def test_the_newest_version_is_committed(store):
    node, rewards = "iter_00001.score_rewards", "iter_00001.rewards"
    for version in ("2026-01-02", "2026-01-10", "2026-01-03"):
        store.write(manifest(node, version, rewards))
    assert store.committed(rewards).version == "2026-01-10"
    assert store.newest(node).version == "2026-01-10"
    assert store.committed(rewards, "2026-01-02").version == "2026-01-02"


def test_what_no_manifest_names_is_not_committed(store):
    assert store.committed("iter_00001.rewards") is None
    store.write(manifest("iter_00001.score_rewards", "v1", "iter_00001.rewards"))
    assert store.committed("iter_00001.rewards", "v2") is None
    assert store.committed("iter_00001.rollouts") is None
    assert store.committed("iter_00002.rewards") is None
    assert store.newest("iter_00002.score_rewards") is None


def test_history_is_not_rewritten(store):
    store.write(manifest("prepare_tasks", "v1", "tasks"))
    with pytest.raises(LineageError, match="recorded once"):
        store.write(manifest("prepare_tasks", "v1", "tasks"))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}', '{"format": 1}'])
def test_a_damaged_manifest_is_named(store, text):
    path = store.write(manifest("prepare_tasks", "v1", "tasks"))
    path.write_text(text)
    with pytest.raises(LineageError, match=r"cannot read the manifest .*prepare_tasks/v1\.json"):
        store.committed("tasks")


def test_a_reference_changes_with_the_manifest(store):
    path = store.write(manifest("prepare_tasks", "v1", "tasks"))
    assert store.reference(path) == ("experiment/prepare_tasks/v1.json", file_sha256(path))
    edited = dataclasses.replace(store.read(path), seed=1)
    path.unlink()
    assert store.reference(store.write(edited))[1] != file_sha256(__file__)
    assert store.read(path).seed == 1


def test_iterations_are_in_order(store):
    for index in (10, 9, 0):
        store.write(manifest(f"iter_{index:05d}.score_rewards", "v1"))
    store.write(manifest("base.import_policy", "v1"))
    assert store.iterations() == ["base", "iter_00000", "iter_00009", "iter_00010"]

"""Manifests on disk, and what they commit."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest

from agent_r1.lineage import LineageError, Manifest, ManifestStore, OutputRecord, iteration_of
from agent_r1.storage.atomic import strict_json


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
    seal = store.read(path).seal
    assert store.name(path) == store.read(path).place == "experiment/prepare_tasks/v1.json"
    edited = dataclasses.replace(store.read(path), seed=1)
    path.unlink()
    assert store.read(store.write(edited)).seal != seal
    assert store.read(path).seed == 1


def test_a_seal_covers_everything_but_what_was_pruned(store):
    """Anyone can check it: it is the sha256 of the strict JSON without the two keys."""
    path = store.write(manifest("prepare_tasks", "v1", "tasks", "documents"))
    values = json.loads(path.read_text())
    covered = {key: value for key, value in values.items() if key not in ("sha256", "pruned")}
    assert values["sha256"] == hashlib.sha256(strict_json(covered).encode()).hexdigest()
    store.mark_pruned(path, ["tasks"])
    assert store.read(path).seal == values["sha256"]
    assert store.read(path).pruned == ("tasks",)
    assert store.committed("tasks").pruned
    assert not store.committed("documents").pruned


@pytest.mark.parametrize(
    ("old", "new"),
    [('"seed": 0', '"seed": 1'), ('"rows": 3', '"rows": 4'), ('"seed": 0', '"seed":  0')],
)
def test_an_edited_manifest_is_refused(store, old, new):
    path = store.write(manifest("prepare_tasks", "v1", "tasks"))
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(LineageError, match=r"prepare_tasks/v1\.json"):
        store.read(path)


def test_what_was_made_aside_is_read_by_its_version_only(store):
    node, rewards = "iter_00001.score_rewards", "iter_00001.rewards"
    store.write(manifest(node, "v1", rewards))
    store.write(dataclasses.replace(manifest(node, "v2", rewards), aside=True))
    assert store.committed(rewards).version == "v1"
    assert store.newest(node).version == "v1"
    assert store.committed(rewards, "v2").version == "v2"
    assert [path.stem for path in store.paths(node)] == ["v2", "v1"]


def test_an_adopted_manifest_is_the_same_one(store, tmp_path):
    path = store.write(manifest("iter_00001.score_rewards", "v1", "iter_00001.rewards"))
    other = ManifestStore(tmp_path / "other")
    adopted = other.adopt(path, store.root)
    assert adopted.read_bytes() == path.read_bytes()
    assert other.name(adopted) == store.name(path)
    assert other.read(adopted).seal == store.read(path).seal


def test_iterations_are_in_order(store):
    for index in (10, 9, 0):
        store.write(manifest(f"iter_{index:05d}.score_rewards", "v1"))
    store.write(manifest("base.import_policy", "v1"))
    assert store.iterations() == ["base", "iter_00000", "iter_00009", "iter_00010"]

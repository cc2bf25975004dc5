"""`verify` finds every change, names it, and finds nothing where nothing was changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent_r1.experiments.rerun import Request, Rerunner
from agent_r1.lineage import Experiment, ManifestStore
from agent_r1.lineage.seal import sealed
from agent_r1.lineage.verify import verify
from agent_r1.storage.atomic import write_json
from tests.support.toy_experiment import finish_experiment, opened


@pytest.fixture
def experiment(project):
    """A toy experiment of two iterations; ``.check()`` gives (kind, path) of each finding."""
    finish_experiment(project.path, 2)
    project.folder = project.path / "data/08_reporting/x"
    project.store = ManifestStore(project.folder / "manifests")

    def check() -> list[tuple[str, str]]:
        result = verify(Experiment(project.path, project.store.root))
        return [(finding.kind, finding.path) for finding in result.findings]

    project.check = check
    return project


def path_of(experiment, dataset: str) -> Path:
    return experiment.path / experiment.store.committed(dataset).record.path


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_an_untouched_experiment_has_no_findings(experiment):
    assert experiment.check() == []
    seen = []
    opened = Experiment(experiment.path, experiment.store.root)
    result = verify(opened, lambda *args: seen.append(args))
    assert result.manifests == len(experiment.store.every_path()) > 15
    assert seen[-1] == (result.files, result.files)
    assert result.files > 40


@pytest.mark.parametrize(
    "dataset",
    ["tasks", "documents", "demonstrations", "iter_00001.rollouts", "iter_00001.rollout_timings",
     "iter_00002.rewards", "iter_00001.logprobs", "iter_00001.advantages",
     "iter_00002.preferences", "iter_00001.update_metrics", "iter_00001.controllers",
     "base.evaluation", "iter_00002.validation", "report_html", "summary",
     "learning_curves_figure"],
)  # fmt: skip
@pytest.mark.parametrize("damage", ["flip", pytest.param("delete", marks=pytest.mark.slow)])
def test_a_changed_or_deleted_file_is_named(experiment, dataset, damage):
    path = path_of(experiment, dataset)
    flip(path) if damage == "flip" else path.unlink()
    kind = "changed" if damage == "flip" else "missing"
    assert experiment.check() == [(kind, path.relative_to(experiment.path).as_posix())]


@pytest.mark.parametrize("name", ["model.safetensors", "_COMMITTED"])
@pytest.mark.parametrize("damage", [flip, Path.unlink])
def test_a_changed_checkpoint_is_named(experiment, name, damage):
    folder = path_of(experiment, "iter_00001.policy")
    damage(folder / name)
    assert experiment.check() == [("changed", folder.relative_to(experiment.path).as_posix())]


def test_a_file_too_many_in_a_checkpoint_is_named(experiment):
    folder = path_of(experiment, "iter_00001.critic")
    (folder / "more.txt").write_text("x")
    assert experiment.check() == [("changed", folder.relative_to(experiment.path).as_posix())]


def test_changed_raw_data_is_named(experiment):
    flip(experiment.path / "data/01_raw/knowledge_base/cities.parquet")
    assert experiment.check() == [("raw", "data/01_raw/knowledge_base/cities.parquet")]


@pytest.mark.slow
def test_every_byte_of_a_manifest_counts(experiment):
    path = experiment.store.current("iter_00002.update_policy")
    content = path.read_bytes()
    shown = path.relative_to(experiment.path).as_posix()
    for position in range(0, len(content), 97):
        changed = bytearray(content)
        changed[position] ^= 1
        path.write_bytes(changed)
        assert ("manifest", shown) in experiment.check(), position
    path.write_bytes(content)
    assert experiment.check() == []


def test_a_forged_manifest_is_found_by_what_was_made_after_it(experiment):
    """With a new seal it is sound by itself."""
    path = experiment.store.current("iter_00001.score_rewards")
    values = json.loads(path.read_text())
    write_json(path, sealed({**values, "seconds": 0.0}, frozenset({"pruned"})))
    shown = path.relative_to(experiment.path).as_posix()
    assert set(experiment.check()) == {("chain", shown)}


def test_a_deleted_manifest_is_found(experiment):
    path = experiment.store.current("iter_00001.score_rewards")
    path.unlink()
    assert ("chain", path.relative_to(experiment.path).as_posix()) in experiment.check()


def test_forged_parameters_are_not_those_of_the_branch(experiment):
    path = experiment.store.current("iter_00002.validate_policy")
    values = json.loads(path.read_text())
    values["parameters"]["params:rollout"]["temperature"] = 9.0
    write_json(path, sealed(values, frozenset({"pruned"})))
    assert ("branch", path.relative_to(experiment.path).as_posix()) in experiment.check()


def test_an_edited_branch_is_named(experiment):
    path = experiment.folder / "branches/00000.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    assert ("branch", "data/08_reporting/x/branches") in experiment.check()


def _two_versions(experiment) -> tuple[Path, Path]:
    request = Request("score_rewards", "1", overrides={"reward": {"value": 5}})
    result = Rerunner(opened(experiment.path, "x")).rerun(request)
    folder = experiment.path / "data/04_feature/x/iter_00001/rewards.parquet"
    assert experiment.check() == []
    return folder / result.replaces, folder / result.version


def test_two_versions_that_changed_places_are_both_named(experiment):
    first, second = _two_versions(experiment)
    shutil.move(first, first.with_name("between"))
    shutil.move(second, first)
    shutil.move(first.with_name("between"), second)
    paths = {
        f"{v.relative_to(experiment.path).as_posix()}/rewards.parquet" for v in (first, second)
    }
    assert set(experiment.check()) == {("changed", path) for path in paths}


def test_two_manifests_that_changed_places_are_both_named(experiment):
    versions = [path.name for path in _two_versions(experiment)]
    folder = experiment.store.root / "iter_00001/score_rewards"
    first, second = (folder / f"{version}.json" for version in versions)
    texts = first.read_bytes(), second.read_bytes()
    first.write_bytes(texts[1])
    second.write_bytes(texts[0])
    found = set(experiment.check())
    for path in (first, second):
        assert ("manifest", path.relative_to(experiment.path).as_posix()) in found


def test_all_damage_is_named_at_once(experiment):
    flip(path_of(experiment, "tasks"))
    path_of(experiment, "iter_00002.rewards").unlink()
    manifest = experiment.store.current("iter_00002.evaluate_policy")
    manifest.write_text("{}")
    kinds = {kind for kind, _ in experiment.check()}
    assert {"changed", "missing", "manifest"} <= kinds


def test_a_pruned_checkpoint_may_be_gone(experiment):
    folder = path_of(experiment, "iter_00001.critic")
    experiment.store.mark_pruned(
        experiment.store.current("iter_00001.update_policy"), ["iter_00001.critic"]
    )
    shutil.rmtree(folder)
    assert experiment.check() == []

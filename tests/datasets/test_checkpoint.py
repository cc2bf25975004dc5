"""Checkpoints: adopted by rename, committed by a marker, no pickles."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from kedro.io import DatasetError, Version

from agent_r1.datasets import CheckpointDataset
from agent_r1.storage.hashing import MARKER, folder_sha256


def staged(root: Path, **files: str) -> Path:
    folder = root / "staging"
    folder.mkdir()
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    return folder


def dataset(root: Path, load: str | None = None, save: str | None = "v1") -> CheckpointDataset:
    return CheckpointDataset(filepath=str(root / "policy"), version=Version(load, save))


def test_the_folder_is_moved_and_its_path_loaded(tmp_path):
    folder = staged(tmp_path, model__safetensors="w")
    content = folder_sha256(folder)
    dataset(tmp_path).save(folder)
    assert not folder.exists()
    loaded = dataset(tmp_path).load()
    assert loaded == tmp_path / "policy/v1/policy"
    assert folder_sha256(loaded) == content


def test_an_empty_folder_is_a_checkpoint(tmp_path):
    dataset(tmp_path).save(staged(tmp_path))
    assert [file.name for file in dataset(tmp_path).load().iterdir()] == [MARKER]


def test_a_folder_without_its_marker_is_not_there(tmp_path):
    dataset(tmp_path).save(staged(tmp_path, a="1"))
    dataset(tmp_path, save="v2").save(staged(tmp_path, a="2"))
    (tmp_path / "policy/v2/policy" / MARKER).unlink()
    assert (dataset(tmp_path).load() / "a").read_text() == "1"
    with pytest.raises(DatasetError, match="v2/policy does not exist"):
        dataset(tmp_path, load="v2").load()


@pytest.mark.parametrize("name", ["pytorch_model__bin", "optimizer__pt", "state__pkl"])
def test_pickles_are_refused(tmp_path, name):
    folder = staged(tmp_path, model__safetensors="w", **{name: "p"})
    with pytest.raises(DatasetError, match="may be a pickle"):
        dataset(tmp_path).save(folder)
    assert not dataset(tmp_path).exists()


def test_links_are_refused(tmp_path):
    folder = staged(tmp_path)
    (folder / "model.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DatasetError, match="is a link"):
        dataset(tmp_path).save(folder)


def test_without_versions_the_folder_is_replaced(tmp_path):
    dataset = CheckpointDataset(filepath=str(tmp_path / "tiny_base"))
    dataset.save(staged(tmp_path, a="1", b="1"))
    dataset.save(staged(tmp_path, a="2"))
    assert (tmp_path / "tiny_base/a").read_text() == "2"
    assert not (tmp_path / "tiny_base/b").exists()


def test_a_checked_out_folder_without_a_marker_is_replaced_too(tmp_path):
    (tmp_path / "tiny_base").mkdir()
    (tmp_path / "tiny_base/old").touch()
    dataset = CheckpointDataset(filepath=str(tmp_path / "tiny_base"))
    dataset.save(staged(tmp_path, new="1"))
    assert {file.name for file in dataset.load().iterdir()} == {"new", MARKER}
    assert [folder.name for folder in tmp_path.iterdir()] == ["tiny_base"]


def cannot_rename(monkeypatch, folder: Path, number: int) -> None:
    rename = os.rename

    def refuse(source, target):
        if Path(source) == folder:
            raise OSError(number, os.strerror(number))
        rename(source, target)

    monkeypatch.setattr("os.rename", refuse)


def test_a_failed_replacement_keeps_the_old_folder(tmp_path, monkeypatch):
    dataset = CheckpointDataset(filepath=str(tmp_path / "tiny_base"))
    dataset.save(staged(tmp_path, a="1"))
    new = staged(tmp_path, a="2")
    cannot_rename(monkeypatch, new, errno.EACCES)
    with pytest.raises(DatasetError, match=r"cannot move the checkpoint .*Permission denied"):
        dataset.save(new)
    assert (dataset.load() / "a").read_text() == "1"


def test_a_folder_on_another_disk_is_copied_beside_the_target(tmp_path, monkeypatch):
    saved = CheckpointDataset(filepath=str(tmp_path / "disk/policy"), version=Version(None, "v"))
    new = staged(tmp_path, a="1")
    (new / "deep").mkdir()
    (new / "deep/b").write_text("2")
    cannot_rename(monkeypatch, new, errno.EXDEV)
    saved.save(new)
    assert (saved.load() / "a").read_text() == "1"
    assert (saved.load() / "deep/b").read_text() == "2"
    assert not new.exists()
    assert [each.name for each in (tmp_path / "disk/policy/v").iterdir()] == ["policy"]


def test_a_copy_that_fails_leaves_nothing_beside_the_target(tmp_path, monkeypatch):
    dataset = CheckpointDataset(filepath=str(tmp_path / "disk/tiny_base"))
    dataset.save(staged(tmp_path, a="1"))
    new = staged(tmp_path, a="2")
    cannot_rename(monkeypatch, new, errno.EXDEV)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copytree", full)
    with pytest.raises(DatasetError, match=r"cannot write: No space left on device: '.*tiny_base'"):
        dataset.save(new)
    assert [each.name for each in (tmp_path / "disk").iterdir()] == ["tiny_base"]
    assert (dataset.load() / "a").read_text() == "1"


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(DatasetError, match="expected a checkpoint folder"):
        dataset(tmp_path).save(tmp_path / "nothing")


def test_a_crash_before_the_marker_commits_nothing(tmp_path, monkeypatch):
    def crash(*_):
        raise OSError("disk full")

    monkeypatch.setattr("agent_r1.datasets.checkpoint.write_json", crash)
    with pytest.raises(DatasetError, match="disk full"):
        dataset(tmp_path).save(staged(tmp_path, a="1"))
    assert not dataset(tmp_path).exists()

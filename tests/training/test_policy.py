"""Policies on disk: refused folders, copied files, reproducible bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from agent_r1.storage.hashing import folder_sha256
from agent_r1.training.policy import (
    ModelFolderError,
    check_model_folder,
    copy_checkpoint,
    import_model,
    load_policy,
    save_policy,
)
from tests.support.tiny_models import flat_weights, random_model


def without(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def with_file(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "does not exist"),
        (without("config.json"), "has no config.json"),
        (without("model.safetensors"), "has no safetensors weights"),
        (without("tokenizer.json"), "has no tokenizer"),
        (with_file("pytorch_model.bin"), r"pickled files \(pytorch_model.bin\)"),
        (with_file("optimizer.pt"), r"pickled files \(optimizer.pt\)"),
    ],
)
def test_an_unusable_folder_is_refused(
    policy_folder: Path, tmp_path: Path, damage: Callable[[Path], None], message: str
) -> None:
    folder = shutil.copytree(policy_folder, tmp_path / "model")
    assert check_model_folder(folder) == folder
    damage(folder)
    for use in (check_model_folder, load_policy, lambda path: import_model(path, tmp_path / "i")):
        with pytest.raises(ModelFolderError, match=message):
            use(folder)


def test_a_saved_policy_loads_with_the_same_weights_and_without_dropout(
    policy_folder: Path,
) -> None:
    model = load_policy(policy_folder)
    assert torch.equal(flat_weights(model), flat_weights(random_model()))
    assert not model.training
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_equal_weights_give_equal_bytes(policy_folder: Path, tmp_path: Path) -> None:
    again = save_policy(load_policy(policy_folder), policy_folder, tmp_path / "again")
    twice = save_policy(load_policy(again), again, tmp_path / "twice")
    assert folder_sha256(again) == folder_sha256(twice)
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        assert (twice / name).read_bytes() == (policy_folder / name).read_bytes()
    assert not list(twice.glob("*.bin"))


def test_a_copied_checkpoint_keeps_its_hash_and_loses_its_markers(
    policy_folder: Path, tmp_path: Path
) -> None:
    source = shutil.copytree(policy_folder, tmp_path / "source")
    (source / "_COMMITTED").write_text("x")
    copy = copy_checkpoint(source, tmp_path / "copy")
    assert folder_sha256(copy) == folder_sha256(source)
    assert not (copy / "_COMMITTED").exists()


def test_an_import_copies_only_the_files_of_a_policy(policy_folder: Path, tmp_path: Path) -> None:
    source = shutil.copytree(policy_folder, tmp_path / "source")
    (source / "README.md").write_text("x")
    (source / "onnx").mkdir()
    imported = import_model(source, tmp_path / "imported")
    assert folder_sha256(imported) == folder_sha256(policy_folder)

"""Content hashes."""

from __future__ import annotations

import hashlib

import pytest

from agent_r1.storage.hashing import content_sha256, file_sha256, folder_sha256


def test_a_folder_is_hashed_over_sorted_names_and_file_hashes(tmp_path):
    (tmp_path / "b.txt").write_text("B")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("A")
    lines = [
        f"{name}\t{hashlib.sha256(text).hexdigest()}\n"
        for name, text in (("b.txt", b"B"), ("sub/a.txt", b"A"))
    ]
    assert folder_sha256(tmp_path) == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_markers_are_not_content(tmp_path):
    (tmp_path / "weights").write_text("w")
    before = folder_sha256(tmp_path)
    (tmp_path / "_COMMITTED").write_text("{}")
    assert folder_sha256(tmp_path) == before


@pytest.mark.parametrize("change", ["rename", "edit", "add"])
def test_any_change_of_content_changes_the_hash(tmp_path, change):
    (tmp_path / "weights").write_text("w")
    before = folder_sha256(tmp_path)
    if change == "rename":
        (tmp_path / "weights").rename(tmp_path / "weighs")
    elif change == "edit":
        (tmp_path / "weights").write_text("v")
    else:
        (tmp_path / "other").write_text("")
    assert folder_sha256(tmp_path) != before


def test_content_is_a_file_or_a_folder(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    assert content_sha256(file) == file_sha256(file) == hashlib.sha256(b"x").hexdigest()
    assert content_sha256(tmp_path) == folder_sha256(tmp_path)


def test_a_file_is_not_a_folder(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(NotADirectoryError):
        folder_sha256(file)

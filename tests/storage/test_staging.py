"""Staging folders of checkpoints, and who owns them."""

from __future__ import annotations

import os
import platform

from agent_r1.storage.staging import abandoned, stage
from tests.support.processes import dead_process


def test_staged_folders_are_fresh(tmp_path):
    first, second = stage("policy", tmp_path), stage("policy", tmp_path)
    assert first != second
    assert list(first.iterdir()) == list(second.iterdir()) == []


def test_a_folder_is_abandoned_if_its_process_on_this_host_is_gone(tmp_path):
    own = stage("policy", tmp_path)
    dead = tmp_path / f"{platform.node()}.{dead_process()}"
    others = [tmp_path / f"other-host.{dead_process()}", tmp_path / "notes"]
    for folder in (dead, *others):
        folder.mkdir()
    assert abandoned(tmp_path) == [dead]
    os.utime(others[0], (0, 0))
    os.utime(others[1], (0, 0))
    assert abandoned(tmp_path) == sorted([dead, others[0]])
    assert own.is_dir()

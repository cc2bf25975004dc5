"""The folders where nodes write checkpoints, until the catalog adopts them by rename.

``data/.staging/<host>.<process>/<name>-<random>``: the path names the owner, so leftovers of a
killed process can be told apart from the folders of a running one.
"""

from __future__ import annotations

import os
import platform
import time
import uuid
from pathlib import Path

STAGING = Path("data/.staging")
_ELSEWHERE_SECONDS = 86_400


def stage(name: str, root: Path = STAGING) -> Path:
    """A new folder for a checkpoint that the catalog will adopt.

    Its random name is not part of the checkpoint's content.
    """
    owner = f"{platform.node()}.{os.getpid()}"
    folder = root / owner / f"{name}-{uuid.uuid4().hex[:12]}"
    folder.mkdir(parents=True)
    return folder


def abandoned(root: Path = STAGING) -> list[Path]:
    """The owners' folders whose process no longer runs.

    Processes of other hosts cannot be checked: their folders count as abandoned if nothing was
    staged in them for a day. Folders with other names are ignored.
    """
    folders = [folder for folder in sorted(root.glob("*")) if folder.is_dir()]
    return [folder for folder in folders if _is_abandoned(folder)]


def _is_abandoned(folder: Path) -> bool:
    host, _, process = folder.name.rpartition(".")
    if not host or not process.isdigit():
        return False
    if host == platform.node():
        return not is_running(int(process))
    return time.time() - folder.stat().st_mtime > _ELSEWHERE_SECONDS


def is_running(process: int) -> bool:
    """Whether there is a process with this number on this host."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True

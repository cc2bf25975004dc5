"""Where nodes write checkpoints before the catalog adopts them by rename.

``data/.staging/<host>.<process>/<name>-<random>``: whose folder it is stands in its path, so what a
killed process left behind is told from what a living one is writing.
"""

from __future__ import annotations

import os
import platform
import uuid
from pathlib import Path

STAGING = Path("data/.staging")


def stage(name: str, root: Path = STAGING) -> Path:
    """A fresh folder for a checkpoint that the catalog will adopt.

    Its random name never reaches the checkpoint's content.
    """
    owner = f"{platform.node()}.{os.getpid()}"
    folder = root / owner / f"{name}-{uuid.uuid4().hex[:12]}"
    folder.mkdir(parents=True)
    return folder


def abandoned(root: Path = STAGING) -> list[Path]:
    """The owners' folders whose process ran on this host and is gone.

    A process of another host cannot be asked, so its folders are not among them.
    """
    folders = [folder for folder in sorted(root.glob("*")) if folder.is_dir()]
    return [folder for folder in folders if not _alive(folder.name)]


def _alive(owner: str) -> bool:
    host, _, process = owner.rpartition(".")
    if host != platform.node() or not process.isdigit():
        return True
    return is_running(int(process))


def is_running(process: int) -> bool:
    """Whether there is a process with this number on this host."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is someone else's
        return True
    return True

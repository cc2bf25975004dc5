"""A checkpoint on disk: a folder that is adopted, never copied through memory."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from kedro.io import DatasetError

from agent_r1.datasets.local import LocalDataset
from agent_r1.storage.atomic import PART, flush, named_in_errors, write_json
from agent_r1.storage.hashing import MARKER, marker_of
from agent_r1.storage.staging import STAGING

_PICKLES = frozenset({".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth"})
"""Suffixes of files that run code when they are loaded."""


class CheckpointDataset(LocalDataset):
    """A folder, such as a Hugging Face model in safetensors; also an empty one.

    1. The node (or its ranks) writes a folder under ``data/.staging`` and returns its path.
    2. ``save(path)`` refuses pickles, flushes the files, renames the folder into place, and
       writes the marker last. A crash in between leaves a folder that nothing loads. Where the
       target is on another disk, the folder is first copied to a hidden one beside the target.
       Without versions, the older folder waits beside the target until the marker is written.
    3. ``load()`` gives the path of the committed folder. Weights never pass through the catalog.
    """

    def __init__(self, **entry: Any) -> None:
        """See `LocalDataset`."""
        super().__init__(**entry)
        self._exists_function = is_committed

    def _read(self, path: Path) -> Path:
        return path

    def _commit(self, data: str | Path, path: Path) -> None:
        folder = Path(data)
        _check(folder)
        for file in folder.rglob("*"):
            if file.is_file():
                flush(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        old = None
        if self._version is None and path.is_dir():  # a version is never overwritten, raw data is
            old = path.with_name(f".{path.name}-{uuid.uuid4().hex[:12]}.replaced")
            os.rename(path, old)
        try:
            _move(folder, path)
        except BaseException:
            if old is not None:
                os.rename(old, path)
            raise
        with suppress(OSError):  # its owner stages something else too
            if folder.parent.parent.name == STAGING.name:
                folder.parent.rmdir()
        flush(path.parent)
        write_json(path / MARKER, marker_of(path))
        if old is not None:
            shutil.rmtree(old)


def is_committed(path: str | Path) -> bool:
    """Whether the folder is a checkpoint whose marker was written."""
    return (Path(path) / MARKER).is_file()


def _move(folder: Path, target: Path) -> None:
    """Rename ``folder``; to another disk, copy it beside the target first.

    Raises:
        DatasetError: it cannot be renamed.
        OSError: it cannot be copied; ``target`` is named, and nothing is left beside it.
    """
    try:
        os.rename(folder, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise DatasetError(
                f"cannot move the checkpoint {folder} to {target}: {error.strerror}"
            ) from error
        os.rename(_copy_beside(folder, target), target)
        shutil.rmtree(folder)


def _copy_beside(folder: Path, target: Path) -> Path:
    copy = target.with_name(f".{target.name}-{uuid.uuid4().hex[:12]}{PART}")
    try:
        with named_in_errors(target):
            shutil.copytree(folder, copy)
            for file in copy.rglob("*"):
                flush(file)
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)
        raise
    return copy


def _check(folder: Path) -> None:
    if not folder.is_dir():
        raise DatasetError(f"expected a checkpoint folder, but {folder} is not a folder")
    for file in folder.rglob("*"):
        if file.is_symlink():
            raise DatasetError(f"{file} is a link; a checkpoint holds its files itself")
        if file.suffix in _PICKLES:
            raise DatasetError(
                f"{file.name} may be a pickle, which runs code when it is loaded; save weights as "
                "safetensors"
            )

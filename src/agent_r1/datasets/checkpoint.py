"""A checkpoint on disk: a folder that is adopted, never copied through memory."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from kedro.io import DatasetError, Version

from agent_r1.datasets.local import LocalDataset
from agent_r1.storage.atomic import flush, write_json
from agent_r1.storage.hashing import MARKER, marker_of
from agent_r1.storage.staging import STAGING

_PICKLES = frozenset({".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth"})
"""Suffixes of files that run code when they are loaded."""


class CheckpointDataset(LocalDataset):
    """A folder, such as a Hugging Face model in safetensors; also an empty one.

    1. The node (or its ranks) writes a folder under ``data/.staging`` and returns its path.
    2. ``save(path)`` refuses pickles, flushes the files, renames the folder into place, and
       writes the marker last. A crash in between leaves a folder that no one loads. Without
       versions, an older folder waits beside the staged one until the marker is written.
    3. ``load()`` gives the path of the committed folder. Weights never pass through the catalog.
    """

    def __init__(
        self, *, filepath: str, version: Version | None = None, metadata: dict | None = None
    ) -> None:
        """See `LocalDataset`."""
        super().__init__(filepath=filepath, version=version, metadata=metadata)
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
            old = folder.with_name(f"{folder.name}.replaced")
            _move(path, old)
        try:
            _move(folder, path)
        except DatasetError:
            if old is not None:
                _move(old, path)
            raise
        with suppress(OSError):  # its owner stages something else, or it is no staging folder
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
    try:
        os.rename(folder, target)
    except OSError as error:
        raise DatasetError(
            f"cannot move the checkpoint {folder} to {target}: {error.strerror}. The two must be "
            "on the same file system: write checkpoints under data/.staging."
        ) from error


def _check(folder: Path) -> None:
    if not folder.is_dir():
        raise DatasetError(f"a checkpoint is a folder, and {folder} is none")
    for file in folder.rglob("*"):
        if file.is_symlink():
            raise DatasetError(f"{file} is a link; a checkpoint holds its files itself")
        if file.suffix in _PICKLES:
            raise DatasetError(
                f"{file.name} may be a pickle, which runs code when it is loaded; save weights as "
                "safetensors"
            )

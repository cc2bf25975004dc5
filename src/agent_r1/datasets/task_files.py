"""Files of tasks as one catalog entry, read as a loader asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from kedro.io import AbstractDataset, DatasetError

from agent_r1.tasks.files import TaskFiles


class TaskFilesDataset(AbstractDataset):
    """Loads a `TaskFiles`; read-only.

    Parameters name the files (``tasks.sources.NAME.files``), and the catalog cannot read
    parameters. So the entry is the folder, and the node asks for the files it needs. The manifest
    names every file that was asked for, with its sha256. It does not cover the whole folder, where
    files of other experiments may come and go.
    """

    def __init__(self, *, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        """``filepath``: the folder that names are relative to."""
        self._folder = Path(filepath)
        self._files = TaskFiles(self._folder)
        self.metadata = metadata

    def load(self) -> TaskFiles:
        """The files; nothing is read yet."""
        self._files = TaskFiles(self._folder)
        return self._files

    def files_used(self) -> list[Path]:
        """The files that were asked for since the last load."""
        return [path for path in self._files.used if path.is_file()]

    def save(self, data: Any) -> NoReturn:
        """Raw data is not written."""
        raise DatasetError("task files are raw data: no node may return them")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._folder)}

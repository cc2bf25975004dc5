"""Files of tasks as one catalog entry, read as a loader asks for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from kedro.io import AbstractDataset, DatasetError

from agent_r1.tasks.files import TaskFiles


class TaskFilesDataset(AbstractDataset):
    """Gives a `TaskFiles`; read-only.

    Which files there are is said by parameters (``tasks.sources.NAME.files``), and the catalog
    cannot read those; an entry per file would have to repeat each path beside the parameter that
    chooses it. So the entry is the folder, and the node asks it for paths, as it asks a checkpoint
    for its own. The manifest names every file that was asked for, with its sha256: not the whole
    folder, where a file of another experiment may come or go.
    """

    def __init__(self, *, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        """
        Args:
            filepath: the folder where names start.
            metadata: ignored.
        """
        self._folder = Path(filepath)
        self._files = TaskFiles(self._folder)
        self.metadata = metadata

    def load(self) -> TaskFiles:
        """The files; nothing is read yet."""
        self._files = TaskFiles(self._folder)
        return self._files

    def files_used(self) -> list[Path]:
        """What was asked for since the last load."""
        return [path for path in self._files.used if path.is_file()]

    def save(self, data: Any) -> NoReturn:
        """Raw data is not written."""
        raise DatasetError("task files are raw data: no node may return them")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._folder)}

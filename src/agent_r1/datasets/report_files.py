"""The files of the report. Every run replaces them, atomically."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from kedro.io import DatasetError
from matplotlib.figure import Figure

from agent_r1.datasets.local import LocalDataset
from agent_r1.storage.atomic import atomic_path


class TextDataset(LocalDataset):
    """A text file in UTF-8. A save that fails leaves no half of a file."""

    def _read(self, path: Path) -> str:
        return path.read_text(encoding="utf-8")

    def _commit(self, data: str, path: Path) -> None:
        with atomic_path(path) as temporary:
            temporary.write_text(data, encoding="utf-8")


class FigureDataset(LocalDataset):
    """A Matplotlib figure as PNG, the same bytes for the same figure; it cannot be loaded."""

    def __init__(self, *, filepath: str, dpi: int = 120, metadata: dict | None = None) -> None:
        """``dpi``: dots per inch."""
        super().__init__(filepath=filepath, metadata=metadata)
        self._dpi = dpi

    def _read(self, path: Path) -> NoReturn:
        raise DatasetError(f"{path} is an image and cannot be loaded as a figure")

    def _commit(self, data: Figure, path: Path) -> None:
        with atomic_path(path) as temporary:
            data.savefig(temporary, format="png", dpi=self._dpi)

    def _describe(self) -> dict[str, Any]:
        return {**super()._describe(), "dpi": self._dpi}

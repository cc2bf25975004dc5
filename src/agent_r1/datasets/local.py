"""What the project's own file datasets share: local paths, Kedro versions, atomic commits."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path, PurePosixPath
from typing import Any

from kedro.io import AbstractVersionedDataset, DatasetError, Version


class LocalDataset(AbstractVersionedDataset):
    """A dataset that is one path on the local disk, versioned by Kedro.

    A version lives at ``<filepath>/<version>/<name of filepath>``. Subclasses write a version
    wholly or not at all.
    """

    def __init__(
        self, *, filepath: str, version: Version | None = None, metadata: dict | None = None
    ) -> None:
        """
        Args:
            filepath: where the dataset lives; with versions, the folder of the versions.
            version: set by Kedro for ``versioned: true``.
            metadata: ignored here; other tools may read it from the catalog.
        """
        super().__init__(PurePosixPath(filepath), version)
        self.metadata = metadata

    def load(self) -> Any:
        """The content of the pinned version, else of the newest one.

        Raises:
            DatasetError: there is none, or it cannot be read.
        """
        path = Path(self._get_load_path())
        if not self._exists_function(str(path)):
            raise DatasetError(f"{path} does not exist")
        return self._read(path)

    def save(self, data: Any) -> None:
        """Commit ``data`` as the version of this run.

        Raises:
            DatasetError: it cannot be saved; nothing is left behind, or the version exists.
        """
        self._commit(data, Path(self._get_save_path()))

    @abstractmethod
    def _read(self, path: Path) -> Any: ...

    @abstractmethod
    def _commit(self, data: Any, path: Path) -> None: ...

    def _exists(self) -> bool:
        return bool(self._exists_function(str(self._get_load_path())))

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._filepath), "version": self._version}

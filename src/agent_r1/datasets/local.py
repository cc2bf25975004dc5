"""What the project's own file datasets share: local paths, Kedro versions, atomic commits."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path, PurePosixPath
from typing import Any

from kedro.io import AbstractVersionedDataset, DatasetError, Version
from kedro.io.core import VersionNotFoundError

from agent_r1.lineage import Committed, ManifestStore


class LocalDataset(AbstractVersionedDataset):
    """A dataset that is one path on the local disk, versioned by Kedro.

    A version lives at ``<filepath>/<version>/<name of filepath>``. Subclasses write a version
    wholly or not at all.

    Below ``data/<layer>/<experiment>``, where the experiment has manifests, the version that is
    loaded if none is pinned is the current committed one, from where its manifest says it is. So
    ``catalog.load`` in a notebook never reads what a crash left behind or what stands aside. A
    dataset that has just been saved gives what was saved: its manifest comes last.
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
        self._saved: str | None = None

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
        self._saved = self.resolve_save_version()

    def _fetch_latest_load_version(self) -> str:
        if self._saved is not None:
            return self._saved
        home = _home(Path(self._filepath))
        if home is None:
            return super()._fetch_latest_load_version()
        return str(self._current(*home).version)

    def _get_load_path(self) -> PurePosixPath:
        home = _home(Path(self._filepath))
        pinned = not self._version or self._version.load or self._saved
        if pinned or home is None:
            return super()._get_load_path()
        project = home[0].root.parents[3]
        return PurePosixPath(project / self._current(*home).record.path)

    def _current(self, store: ManifestStore, name: str) -> Committed:
        committed = store.committed(name)
        if committed is None:
            raise VersionNotFoundError(f"'{name}' is not committed by any manifest in {store.root}")
        return committed

    @abstractmethod
    def _read(self, path: Path) -> Any: ...

    @abstractmethod
    def _commit(self, data: Any, path: Path) -> None: ...

    def _exists(self) -> bool:
        return bool(self._exists_function(str(self._get_load_path())))

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._filepath), "version": self._version}


def _home(filepath: Path) -> tuple[ManifestStore, str] | None:
    """The manifests of the experiment that a dataset belongs to, and its name there; None if it is
    not below an experiment's folder, or that has no manifests.

    The name is that of the catalog: ``iter_00003/rewards.parquet`` is ``iter_00003.rewards``.
    """
    parts = filepath.parts
    data = next((i for i, part in enumerate(parts[:-3]) if part == "data"), None)
    if data is None:
        return None
    experiment = parts[data + 2]
    root = Path(*parts[: data + 1], "08_reporting", experiment, "manifests")
    if not root.is_dir():
        return None
    return ManifestStore(root), ".".join([*parts[data + 3 : -1], filepath.stem])

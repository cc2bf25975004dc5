"""What the project's own file datasets share: local paths, Kedro versions, atomic commits."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kedro.io import DatasetError, Version
from kedro.io.core import VersionNotFoundError

from agent_r1.kedro_adapter import VersionedDataset
from agent_r1.lineage import Experiment


class LocalDataset(VersionedDataset):
    """A dataset that is one path on the local disk, versioned by Kedro.

    A version is at ``<filepath>/<version>/<name of filepath>``. Subclasses write a version wholly
    or not at all.

    A dataset that knows its experiment loads the current committed version when none is pinned,
    from where its manifest says it is. So ``catalog.load`` in a notebook never reads what a crash
    left behind or what is set aside. A dataset that has just been saved loads what was saved: its
    manifest comes last.
    """

    def __init__(
        self,
        *,
        filepath: str,
        version: Version | None = None,
        experiment: Mapping[str, str] | None = None,
        name: str | None = None,
        metadata: dict | None = None,
    ) -> None:
        """
        Args:
            filepath: where the dataset is; with versions, the folder of the versions.
            version: set by Kedro for ``versioned: true``.
            experiment: see `experiment_of_entry`; set by the project's configuration loader.
            name: the dataset's name in the catalog; set by the same.
            metadata: ignored here; other tools may read it from the catalog.
        """
        super().__init__(filepath, version)
        self.metadata = metadata
        self._experiment = experiment_of_entry(experiment) if experiment and name else None
        self._name = name

    def load(self) -> Any:
        """The content of the pinned version, else of the current one.

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
        self.note_saved()

    def _current(self) -> tuple[str, Path] | None:
        experiment = self._experiment
        if experiment is None or not experiment.exists:
            return None
        committed = experiment.current(str(self._name))
        if committed is None:
            raise VersionNotFoundError(
                f"'{self._name}' is not committed by any manifest in {experiment.manifests.root}"
            )
        return str(committed.version), experiment.path(committed.record)

    @abstractmethod
    def _read(self, path: Path) -> Any: ...

    @abstractmethod
    def _commit(self, data: Any, path: Path) -> None: ...

    def _exists(self) -> bool:
        return bool(self._exists_function(str(self._get_load_path())))

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._filepath), "version": self._version}


def experiment_of_entry(entry: Mapping[str, str]) -> Experiment:
    """The experiment that a catalog entry names under its key ``experiment``.

    Args:
        entry: ``path``: root of the project; ``filepath``: the folder of the manifests.
    """
    return Experiment(Path(entry["path"]), Path(entry["filepath"]))

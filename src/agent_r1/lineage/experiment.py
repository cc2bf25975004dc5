"""One experiment on the disk: its folder, manifests, branches and lock, and its committed results.

Everything that asks "where" or "which version" asks here. Paths come from the catalog entry
``history`` and from manifests; no component of a path is searched by name, so a layer can be moved
in the catalog, and the project or the experiment can have any name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from agent_r1 import tables
from agent_r1.lineage import lock
from agent_r1.lineage.branches import BranchBook
from agent_r1.lineage.manifest import InputRecord, OutputRecord
from agent_r1.lineage.store import Committed, LineageError, ManifestStore


class Experiment:
    """An experiment, whether it has run yet or not."""

    def __init__(self, project: Path, manifests: Path) -> None:
        """
        Args:
            project: root of the Kedro project; recorded paths are relative to it.
            manifests: the folder of the experiment's manifests: ``filepath`` of the catalog entry
                ``history``. Its parent is the experiment's own folder.
        """
        self.project = project
        self.folder = manifests.parent
        self.name = self.folder.name
        self.manifests = ManifestStore(manifests)
        self.branches = BranchBook(self.folder / "branches")

    @property
    def exists(self) -> bool:
        """Whether it has run: whether it has manifests."""
        return self.manifests.root.is_dir()

    def others(self) -> Iterator[Experiment]:
        """The experiments beside this one that have run."""
        for folder in sorted(self.folder.parent.glob("*/")):
            other = Experiment(self.project, folder / self.manifests.root.name)
            if other.name != self.name and other.exists:
                yield other

    def lock(self) -> AbstractContextManager[None]:
        """Hold the experiment while the block runs; raises `LockedError`."""
        return lock.locked(self.folder)

    def path(self, record: OutputRecord | InputRecord) -> Path:
        """Where a recorded dataset is on this disk."""
        return self.project / record.path

    def relative(self, path: Path) -> str:
        """A path as manifests record it: below the project relative to it, else absolute."""
        try:
            return path.relative_to(self.project).as_posix()
        except ValueError:
            return path.as_posix()

    def current(self, dataset: str, version: str | None = None) -> Committed | None:
        """The current (or the given) committed version of a dataset; None if there is none."""
        return self.manifests.committed(dataset, version)

    def table(self, record: OutputRecord | InputRecord) -> pd.DataFrame:
        """A recorded table, with Arrow-backed dtypes.

        Raises:
            LineageError: the file is gone or cannot be read.
        """
        path = self.path(record)
        if not path.is_file():
            raise LineageError(
                f"'{record.dataset}' was committed, but {record.path} is gone: run kedro verify "
                f"--experiment {self.name}"
            )
        try:
            return tables.to_frame(pq.read_table(path, partitioning=None))
        except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
            raise LineageError(
                f"'{record.dataset}': cannot read {record.path}: {error}. Run kedro verify "
                f"--experiment {self.name}"
            ) from error

"""What an experiment has committed so far, as one input of the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import pyarrow.parquet as pq
from kedro.io import AbstractDataset, DatasetError

from agent_r1 import tables
from agent_r1.lineage import Committed, ManifestStore
from agent_r1.lineage.branches import BranchBook


@dataclass(frozen=True)
class History:
    """The committed tables of an experiment."""

    tables: dict[str, pd.DataFrame]
    """Dataset name (``iter_00003.rewards``) → its newest committed version, in order."""
    node_runs: pd.DataFrame
    """A row per node, of its newest run: ``iteration``, ``node``, ``version``, ``started_at``
    (ISO 8601), ``seconds`` (wall-clock), ``rows`` (of its first table, else null)."""

    def iterations(self, name: str) -> dict[str, pd.DataFrame]:
        """Iteration → its table called ``name``, in order."""
        pairs = ((key.rpartition("."), table) for key, table in self.tables.items())
        return {parts[0]: table for parts, table in pairs if parts[2] == name}


class HistoryDataset(AbstractDataset):
    """Loads chosen tables of all iterations, committed versions only; read-only.

    A report over N iterations would need N inputs, and the pipeline would have to know N. The
    manifest of the node that loads this names every table that was read.
    """

    def __init__(
        self, *, filepath: str, tables: list[str], metadata: dict[str, Any] | None = None
    ) -> None:
        """
        Args:
            filepath: the folder of the experiment's manifests.
            tables: names of the tables to load of each iteration that has them.
            metadata: ignored.
        """
        self.filepath = Path(filepath)
        self.store = ManifestStore(filepath)
        self.book = BranchBook(self.filepath.with_name("branches"))
        self._tables = tuple(tables)
        self._members: list[Committed] = []
        self.metadata = metadata

    def members(self) -> list[Committed]:
        """The versions that the last load read."""
        return list(self._members)

    def committed(self) -> list[Committed]:
        """The versions that a load would read now."""
        iterations = self.store.iterations()
        names = [f"{iteration}.{table}" for iteration in iterations for table in self._tables]
        return [found for name in names if (found := self.store.committed(name)) is not None]

    def load(self) -> History:
        """The history.

        Raises:
            DatasetError: a committed table is gone.
        """
        self._members = self.committed()
        return History(
            tables={member.record.dataset: self._read(member) for member in self._members},
            node_runs=self._node_runs(),
        )

    def _read(self, member: Committed) -> pd.DataFrame:
        path = self._project / member.record.path
        if not path.is_file():
            raise DatasetError(
                f"'{member.record.dataset}' was committed by {member.manifest}, but {path} is gone"
            )
        return tables.to_frame(pq.read_table(path, partitioning=None))

    def _node_runs(self) -> pd.DataFrame:
        runs = (manifest for _, manifest in self.store.all() if not manifest.aside)
        newest = {manifest.node: manifest for manifest in runs}
        rows = [
            {
                "iteration": manifest.iteration,
                "node": manifest.stage,
                "version": manifest.version,
                "started_at": manifest.started_at,
                "seconds": manifest.seconds,
                "rows": next((o.rows for o in manifest.outputs if o.rows is not None), None),
            }
            for manifest in newest.values()
        ]
        columns = ["iteration", "node", "version", "started_at", "seconds", "rows"]
        return pd.DataFrame(rows, columns=columns)

    @property
    def _project(self) -> Path:
        """Recorded paths are relative to the project, whose ``data/`` holds the manifests."""
        return next(
            (parent.parent for parent in self.filepath.parents if parent.name == "data"), Path()
        )

    def save(self, data: Any) -> NoReturn:
        """History is not saved: manifests are written when nodes complete."""
        raise DatasetError("the history is written by the runs themselves")

    def _exists(self) -> bool:
        return self.filepath.is_dir()

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self.filepath), "tables": list(self._tables)}

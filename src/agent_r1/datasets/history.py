"""What an experiment has committed so far, as one input of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
from kedro.io import AbstractDataset, DatasetError

from agent_r1.datasets.local import experiment_of_entry
from agent_r1.lineage import Committed, Experiment

_COLUMNS = ["iteration", "node", "version", "started_at", "seconds", "rows"]


@dataclass(frozen=True)
class History:
    """The committed tables of an experiment."""

    tables: dict[str, pd.DataFrame]
    """Dataset name (``iter_00003.rewards``) → its current version, in order."""
    node_runs: pd.DataFrame
    """The newest run of each node, a row each: ``iteration``, ``node``, ``version``, ``started_at``
    (ISO 8601), ``seconds`` (wall-clock), ``rows`` (of its first table, else null)."""

    def iterations(self, name: str) -> dict[str, pd.DataFrame]:
        """Iteration → its table called ``name``, in order."""
        pairs = ((key.rpartition("."), table) for key, table in self.tables.items())
        return {parts[0]: table for parts, table in pairs if parts[2] == name}


class HistoryDataset(AbstractDataset):
    """Loads the current versions of chosen tables of all iterations; read-only.

    Without it a report over N iterations needs N inputs, and the pipeline has to know N. The
    manifest of the node that loads this names every table that was read.
    """

    def __init__(
        self,
        *,
        filepath: str,
        tables: list[str],
        experiment: Mapping[str, str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """
        Args:
            filepath: the folder of the experiment's manifests.
            tables: names of the tables to load of each iteration that has them.
            experiment: see `experiment_of_entry`; set by the project's configuration loader.
                Without it, the working directory is the project.
            metadata: ignored.
        """
        self.experiment = (
            experiment_of_entry(experiment) if experiment else Experiment(Path(), Path(filepath))
        )
        """Its manifests, branches and committed results."""
        self._tables = tuple(tables)
        self._members: list[Committed] = []
        self.metadata = metadata

    def members(self) -> list[Committed]:
        """The versions that the last load read."""
        return list(self._members)

    def committed(self) -> list[Committed]:
        """The versions that a load would read now."""
        iterations = self.experiment.manifests.iterations()
        names = [f"{iteration}.{table}" for iteration in iterations for table in self._tables]
        return [found for name in names if (found := self.experiment.current(name)) is not None]

    def load(self) -> History:
        """The history.

        Raises:
            LineageError: a committed table is gone.
        """
        self._members = self.committed()
        records = [each.record for each in self._members]
        tables = {record.dataset: self.experiment.table(record) for record in records}
        return History(tables, self._node_runs())

    def _node_runs(self) -> pd.DataFrame:
        runs = (manifest for _, manifest in self.experiment.manifests.all() if not manifest.aside)
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
        return pd.DataFrame(rows, columns=_COLUMNS)

    def save(self, data: Any) -> NoReturn:
        """History is not saved: manifests are written when nodes complete."""
        raise DatasetError("the history is written by the runs themselves")

    def _exists(self) -> bool:
        return self.experiment.exists

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self.experiment.manifests.root), "tables": list(self._tables)}

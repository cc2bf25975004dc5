"""What one Kedro run produces, for MLflow and the progress display."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from kedro.pipeline import Pipeline

from agent_r1.lineage import Manifest, ManifestStore
from agent_r1.tracking.run_metrics import Point, points


class RunRecord:
    """What a Kedro run has produced so far."""

    def __init__(self, run_params: dict[str, Any], pipeline: Pipeline) -> None:
        self.version: str = run_params["run_id"]
        namespaces = {node.namespace for node in pipeline.nodes}
        names = run_params["pipeline_names"] or ["__default__"]
        alone = namespaces.pop() if len(namespaces) == 1 else None
        self.stage: str = alone or ",".join(names)
        self.nodes = [node.name for node in pipeline.nodes]
        self.points: dict[str, list[Point]] = {}
        """Saved output → its metrics."""
        self._started = time.monotonic()

    def saved(self, dataset: str, data: Any) -> None:
        """Note a saved output and its metrics."""
        self.points[dataset] = points(dataset, data)

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the run began."""
        return time.monotonic() - self._started


def committed_by(store: ManifestStore, nodes: Iterable[str], version: str) -> list[Manifest]:
    """What a Kedro run of these nodes has committed."""
    paths = (path for name in nodes for path in store.paths(name) if path.stem == version)
    return [store.read(path) for path in paths]

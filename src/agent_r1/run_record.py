"""What one Kedro run produces, for whoever tells about it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from kedro.pipeline import Pipeline

from agent_r1.lineage import Manifest, ManifestStore
from agent_r1.run_metrics import Point, points


class RunRecord:
    """What one Kedro run produced so far, for whoever tells about it."""

    def __init__(self, run_params: dict[str, Any], pipeline: Pipeline) -> None:
        self.version: str = run_params["run_id"]
        self.project = Path(run_params["project_path"])
        namespaces = {node.namespace for node in pipeline.nodes}
        names = run_params["pipeline_names"] or ["__default__"]
        alone = namespaces.pop() if len(namespaces) == 1 else None
        self.stage: str = alone or ",".join(names)
        self.nodes = [node.name for node in pipeline.nodes]
        self.points: list[Point] = []
        self.written: list[str] = []
        self._started = time.monotonic()

    def saved(self, dataset: str, data: Any) -> None:
        """An output was saved."""
        self.written.append(dataset)
        self.points += points(dataset, data)

    def manifests(self, store: ManifestStore) -> list[tuple[str, Manifest]]:
        """Those of its nodes that are committed, with their paths below the store's root."""
        paths = [path for name in self.nodes for path in store.paths(name)]
        own = [path for path in paths if path.stem == self.version]
        return [(path.relative_to(store.root).as_posix(), store.read(path)) for path in own]

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self._started

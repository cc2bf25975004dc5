"""What one Kedro run produces, for MLflow and the progress display."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kedro.pipeline import Pipeline

from agent_r1.lineage import Experiment, Manifest, ManifestStore
from agent_r1.tracking.run_metrics import Point, has_points, points


@dataclass(frozen=True, slots=True)
class Produced:
    """What a Kedro run has committed."""

    manifests: tuple[tuple[str, Manifest], ...]
    """(path below the folder of manifests, manifest)."""
    points: tuple[Point, ...]

    @property
    def versions(self) -> dict[str, str]:
        """Dataset → the version that was written."""
        return {
            record.dataset: manifest.version
            for _, manifest in self.manifests
            for record in manifest.outputs
        }

    @property
    def aside(self) -> bool:
        """Whether any of it is set aside."""
        return any(manifest.aside for _, manifest in self.manifests)


class RunRecord:
    """What a Kedro run has produced so far."""

    def __init__(self, run_params: dict[str, Any], pipeline: Pipeline) -> None:
        self.version: str = run_params["run_id"]
        namespaces = {node.namespace for node in pipeline.nodes}
        names = run_params["pipeline_names"] or ["__default__"]
        alone = namespaces.pop() if len(namespaces) == 1 else None
        self.stage: str = alone or ",".join(names)
        self.nodes = [node.name for node in pipeline.nodes]
        self.written: list[str] = []
        self._points: dict[str, list[Point]] = {}
        self._started = time.monotonic()

    def saved(self, dataset: str, data: Any) -> None:
        """Note a saved output and its metrics."""
        self.written.append(dataset)
        self._points[dataset] = points(dataset, data)

    @property
    def points(self) -> list[Point]:
        """The metrics of all saved outputs."""
        return [point for found in self._points.values() for point in found]

    def produced(self, store: ManifestStore) -> Produced:
        """The part that is committed."""
        manifests = _manifests(store, self.nodes, self.version)
        committed = (record.dataset for _, each in manifests for record in each.outputs)
        found = (point for name in committed for point in self._points.get(name, ()))
        return Produced(manifests, tuple(found))

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the run began."""
        return time.monotonic() - self._started


def produced_by(experiment: Experiment, nodes: Iterable[str], version: str) -> Produced:
    """What a killed run has committed, read from the disk."""
    manifests = _manifests(experiment.manifests, nodes, version)
    found: list[Point] = []
    for _, manifest in manifests:
        for record in manifest.outputs:
            if has_points(record.dataset) and experiment.path(record).is_file():
                found += points(record.dataset, experiment.table(record))
    return Produced(manifests, tuple(found))


def _manifests(
    store: ManifestStore, nodes: Iterable[str], version: str
) -> tuple[tuple[str, Manifest], ...]:
    own = (path for name in nodes for path in store.paths(name) if path.stem == version)
    return tuple((path.relative_to(store.root).as_posix(), store.read(path)) for path in own)

"""Records what a node read and wrote as a manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import pandas as pd
from kedro.io import AbstractDataset, CatalogProtocol
from kedro.pipeline.node import Node

from agent_r1 import kedro_adapter
from agent_r1.lineage.branches import Branch
from agent_r1.lineage.experiment import Experiment
from agent_r1.lineage.manifest import InputRecord, Manifest, OutputRecord
from agent_r1.lineage.provenance import code_version, device_name, library_versions
from agent_r1.lineage.store import Committed, LineageError
from agent_r1.storage.hashing import content_sha256

VOLATILE = frozenset({"rollout_timings"})
"""Tables of wall-clock times: no two runs write the same bytes."""


@runtime_checkable
class Composite(Protocol):
    """A dataset that consists of committed ones, such as an experiment's history."""

    def members(self) -> list[Committed]:
        """The versions that the last load read."""
        ...


@runtime_checkable
class ReadByNode(Protocol):
    """A dataset of raw files, where the node chooses which ones to read."""

    def files_used(self) -> list[Path]:
        """The files that were read since the last load."""
        ...


@dataclass
class NodeRun:
    """A node run that is under way."""

    node: Node
    started_at: datetime
    started: float
    inputs: tuple[InputRecord, ...]
    parameters: dict[str, Any]
    pending: set[str]
    """Outputs that are not saved yet."""
    outputs: list[OutputRecord] = field(default_factory=list)


@dataclass(kw_only=True)
class Recorder:
    """Records the node runs of one Kedro run.

    `begin` → one `saved` per output → the manifest, written when the last output is on the disk.
    """

    experiment: Experiment
    """Where manifests and branches go."""
    catalog: CatalogProtocol
    """The datasets of the run, inputs pinned."""
    seed: int | None
    """The experiment's seed."""
    version: str
    """The save version of the run."""
    environment: str | None
    """Kedro's ``--env``."""
    branch: Branch
    """Its parameters are the run's; it is recorded before the first manifest."""
    recorded: Mapping[str, Any]
    """The branch's parameters as this version of the program reads them: a parameter that is newer
    than the branch has its default."""
    advances: bool
    """Whether results that differ become the experiment's; see `Manifest.aside`."""

    def __post_init__(self) -> None:
        self._running: dict[str, NodeRun] = {}
        self._raw_hashes: dict[str, str] = {}

    def begin(self, node: Node, parameters: Mapping[str, Any]) -> None:
        """The node has loaded its inputs and is about to run.

        Args:
            node: the node.
            parameters: input name (``params:…``) → value, defaults filled in.
        """
        inputs = [record for name in datasets_of(node) for record in self._inputs(name)]
        self._running[node.name] = NodeRun(
            node, datetime.now(UTC), perf_counter(), tuple(inputs), dict(parameters),
            set(node.outputs),
        )  # fmt: skip

    def saved(self, node: Node, dataset: str, data: Any) -> Manifest | None:
        """An output is on the disk. Returns the manifest, which is written once all of them are."""
        run = self._running[node.name]
        run.pending.discard(dataset)
        record = self._output(dataset, data)
        if record is not None:
            run.outputs.append(record)
        if run.pending:
            return None
        del self._running[node.name]
        if not run.outputs:
            return None
        manifest = self._manifest(run)
        self.experiment.branches.write(self.branch)
        self.experiment.manifests.write(manifest)
        return manifest

    def _manifest(self, run: NodeRun) -> Manifest:
        before = self.experiment.manifests.newest(run.node.name)
        return Manifest(
            experiment=self.experiment.name,
            node=run.node.name,
            version=self.version,
            inputs=(*run.inputs, *self._used(run.node)),
            outputs=tuple(run.outputs),
            parameters=run.parameters,
            seed=self.seed,
            code=code_version(self.experiment.project),
            libraries=library_versions(),
            device=device_name(),
            started_at=run.started_at.isoformat(),
            ended_at=datetime.now(UTC).isoformat(),
            seconds=round(perf_counter() - run.started, 3),
            environment=self.environment,
            branch=self.branch.index,
            replaces=before.version if before else None,
            aside=not self.advances and self._is_aside(run, before),
        )

    def _is_aside(self, run: NodeRun, before: Manifest | None) -> bool:
        """Whether to set aside the results of a run that does not advance the experiment: they have
        other parameters than the branch, or differ from the committed ones."""
        if all(record.version is None for record in run.outputs):
            return False  # the report: every run replaces it
        expected = replace(self.branch, parameters=self.recorded)
        if any(expected.differing(name, value) for name, value in run.parameters.items()):
            return True
        return before is not None and bool(changed_outputs(before, run.outputs))

    def _inputs(self, name: str) -> list[InputRecord]:
        dataset = self.catalog[name]
        if isinstance(dataset, Composite):
            return [self._input(member) for member in dataset.members()]
        if not kedro_adapter.is_versioned(dataset):
            return self._raw(name, dataset)
        version = dataset.resolve_load_version()
        committed = self.experiment.current(name, version)
        if committed is None:
            raise LineageError(f"version {version} of '{name}' is not committed")
        return [self._input(committed)]

    def _input(self, committed: Committed) -> InputRecord:
        record, store = committed.record, self.experiment.manifests
        manifest, seal = store.name(committed.manifest), store.read(committed.manifest).seal
        return InputRecord(
            record.dataset, record.version, record.sha256, record.path, manifest, seal
        )

    def _used(self, node: Node) -> Iterator[InputRecord]:
        """The raw files that the node chose to read; known only after it ran."""
        for name in datasets_of(node):
            dataset = self.catalog[name]
            for path in dataset.files_used() if isinstance(dataset, ReadByNode) else ():
                yield InputRecord(name, None, content_sha256(path), self.experiment.relative(path))

    def _raw(self, name: str, dataset: AbstractDataset) -> list[InputRecord]:
        path = kedro_adapter.location(dataset)
        if path is None or not path.exists():  # in memory: the engine
            return []
        if name not in self._raw_hashes:
            self._raw_hashes[name] = content_sha256(path)
        return [InputRecord(name, None, self._raw_hashes[name], self.experiment.relative(path))]

    def _output(self, name: str, data: Any) -> OutputRecord | None:
        dataset = self.catalog[name]
        path = kedro_adapter.location(dataset, self.version)
        if path is None:  # it is kept in memory
            return None
        version = self.version if kedro_adapter.is_versioned(dataset) else None
        rows = len(data) if isinstance(data, pd.DataFrame) else None
        relative = self.experiment.relative(path)
        return OutputRecord(name, version, content_sha256(path), relative, rows)


def datasets_of(node: Node) -> list[str]:
    """The inputs of a node that are not parameters."""
    return [name for name in node.inputs if not kedro_adapter.is_parameter(name)]


def changed_outputs(before: Manifest, outputs: Iterable[OutputRecord]) -> list[str]:
    """The outputs whose bytes differ from the run before, without `VOLATILE` tables."""
    return [
        record.dataset
        for record in outputs
        if record.dataset.rpartition(".")[2] not in VOLATILE
        and (old := before.output(record.dataset)) is not None
        and old.sha256 != record.sha256
    ]

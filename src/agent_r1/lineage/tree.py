"""What made a dataset: its manifest, the manifests of its inputs, and so on to the raw data."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from agent_r1.lineage.manifest import InputRecord, Manifest, OutputRecord
from agent_r1.lineage.store import LineageError, ManifestStore, iteration_of

SHORTEST_HASH = 6
"""The fewest characters of a sha256 that identify a dataset."""


@dataclass(frozen=True, slots=True)
class Origin(OutputRecord):
    """A version of a dataset and where it came from; for raw data, ``version`` is None."""

    made_by: Manifest | None = None
    """None for raw data."""
    inputs: tuple[Origin, ...] = ()
    """Empty if the node read nothing, or if ``seen``."""
    seen: bool = False
    """Whether its inputs are further up in the tree."""


def trace(
    store: ManifestStore, dataset: str, version: str | None = None, depth: int | None = None
) -> Origin:
    """The tree of what made a dataset. A node run that made several members is followed once.

    Args:
        store: the experiment's manifests.
        dataset: full name, such as ``iter_00003.rewards``.
        version: None means the current one.
        depth: how many node runs to go back; None means to the raw data.

    Raises:
        LineageError: the dataset, or something that made it, is not committed.
    """
    committed = store.committed(dataset, version)
    if committed is None:
        wanted = f"version {version} of '{dataset}'" if version else f"'{dataset}'"
        raise LineageError(f"{wanted} is not committed.{_others(store, dataset)}")
    manifest = store.read(committed.manifest)
    return _Tracer(store, depth).origin(committed.record, manifest, 0)


def find(store: ManifestStore, sha256: str) -> list[tuple[str, str | None]]:
    """Dataset and version of every output whose sha256 starts with this, current or not."""
    return [
        (record.dataset, record.version)
        for _, manifest in store.all()
        for record in manifest.outputs
        if record.sha256.startswith(sha256)
    ]


class _Tracer:
    def __init__(self, store: ManifestStore, depth: int | None) -> None:
        self._store = store
        self._depth = depth
        self._seen: set[tuple[str, str]] = set()

    def origin(self, record: OutputRecord, manifest: Manifest, level: int) -> Origin:
        key = (manifest.node, manifest.version)
        seen = key in self._seen
        cut = self._depth is not None and level >= self._depth
        inputs: tuple[Origin, ...] = ()
        if not seen and not cut:
            self._seen.add(key)
            inputs = tuple(self._input(source, level + 1) for source in manifest.inputs)
        return Origin(
            **asdict(record), made_by=manifest, inputs=inputs, seen=seen and bool(manifest.inputs)
        )

    def _input(self, record: InputRecord, level: int) -> Origin:
        if record.manifest is None:
            return Origin(record.dataset, None, record.sha256, record.path)
        path = self._store.root / record.manifest
        manifest = self._store.read(path)
        output = manifest.output(record.dataset)
        if output is None or manifest.seal != record.manifest_sha256:
            raise LineageError(f"{path} is not what made '{record.dataset}': run kedro verify")
        return self.origin(output, manifest, level)


def _others(store: ManifestStore, dataset: str) -> str:
    """The names that are committed in the same iteration."""
    names = sorted(
        {
            record.dataset
            for path in store.every_path(iteration_of(dataset))
            for record in store.read(path).outputs
        }
    )
    if names:
        return f" Committed there: {', '.join(names)}."
    iterations = store.iterations()
    return f" Committed are {iterations[0]} … {iterations[-1]}." if iterations else ""

"""Which version of each input a run reads: the newest committed one, decided before it starts."""

from __future__ import annotations

from collections.abc import Callable

from kedro.io import AbstractVersionedDataset, CatalogProtocol, Version
from kedro.pipeline import Pipeline

from agent_r1.lineage.store import LineageError, ManifestStore


def pin_inputs(
    pipeline: Pipeline,
    catalog: CatalogProtocol,
    store: ManifestStore,
    how_to_make: Callable[[str], str],
) -> dict[str, str]:
    """Fix the load version of every versioned free input of ``pipeline`` in ``catalog``.

    Kedro would load the newest file that exists, which may be what a crash left behind, or what
    another run writes meanwhile. A version that the user chose is kept, if it is committed.

    Args:
        pipeline: what is about to run.
        catalog: its datasets; changed in place.
        store: the experiment's manifests.
        how_to_make: for a dataset's name, the command that makes it.

    Returns:
        Name → version of what was pinned.

    Raises:
        LineageError: an input has no committed version; it is named, with the command to make it.
    """
    pins: dict[str, str] = {}
    missing: list[str] = []
    for name in sorted(pipeline.inputs()):
        dataset = None if name.startswith(("params:", "parameters")) else catalog.get(name)
        if not isinstance(dataset, AbstractVersionedDataset) or dataset._version is None:
            continue
        chosen = dataset._version.load
        committed = store.committed(name, chosen)
        if committed is None or committed.version is None:
            what = f"version {chosen} of '{name}' is not" if chosen else f"'{name}' is not yet"
            missing.append(f"{what} committed; make it with: {how_to_make(name)}")
            continue
        dataset._version = Version(committed.version, dataset._version.save)
        dataset._clear_version_cache()
        pins[name] = committed.version
    if missing:
        raise LineageError("\n".join(missing))
    return pins

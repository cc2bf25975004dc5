"""Which version of each input a run reads: the current one, fixed before the run starts."""

from __future__ import annotations

from collections.abc import Callable

from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline

from agent_r1 import kedro_adapter
from agent_r1.lineage.experiment import Experiment
from agent_r1.lineage.manifest import OutputRecord
from agent_r1.lineage.store import LineageError


def pin_inputs(
    pipeline: Pipeline,
    catalog: CatalogProtocol,
    experiment: Experiment,
    how_to_make: Callable[[str], str],
) -> dict[str, str]:
    """Fix the load version of every versioned free input of ``pipeline`` in ``catalog``.

    Kedro would load the newest file on the disk. A crash may have left it, or another run may be
    writing it. A version that the user chose is kept if it is committed.

    Args:
        pipeline: what is about to run.
        catalog: its datasets; changed in place.
        experiment: which versions are current.
        how_to_make: dataset name → the command that makes it.

    Returns:
        Name → version of every pinned input.

    Raises:
        LineageError: an input has no committed version, or its files are gone; the message names
            it and the command that makes it.
    """
    pins: dict[str, str] = {}
    missing: list[str] = []
    for name in sorted(pipeline.inputs()):
        dataset = None if kedro_adapter.is_parameter(name) else catalog.get(name)
        if dataset is None or not kedro_adapter.is_versioned(dataset):
            continue
        chosen = kedro_adapter.chosen_version(dataset)
        try:
            record = _loadable(name, chosen, experiment)
        except LineageError as error:
            missing.append(f"{error}; make it with: {how_to_make(name)}")
            continue
        # That may be another experiment's folder: a fork shares what was made before it.
        kedro_adapter.pin(dataset, record.version, experiment.path(record).parent.parent)
        pins[name] = str(record.version)
    if missing:
        raise LineageError("\n".join(missing))
    return pins


def _loadable(name: str, chosen: str | None, experiment: Experiment) -> OutputRecord:
    """The current (or the chosen) version; raises `LineageError` if it cannot be loaded."""
    committed = experiment.current(name, chosen)
    if committed is None:
        raise LineageError(
            f"version {chosen} of '{name}' is not committed"
            if chosen
            else f"'{name}' is not yet committed"
        )
    if committed.pruned:
        raise LineageError(f"version {committed.version} of '{name}' was pruned by retention")
    if not experiment.path(committed.record).exists():
        raise LineageError(f"'{name}' was committed, but {committed.record.path} is gone")
    return committed.record

"""Which version of each input a run reads: the current one, fixed before the run starts."""

from __future__ import annotations

from collections.abc import Callable

from kedro.io import AbstractDataset, CatalogProtocol
from kedro.pipeline import Pipeline

from agent_r1 import kedro_adapter
from agent_r1.lineage.experiment import Experiment
from agent_r1.lineage.store import Committed, LineageError


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
        dataset = None if name.startswith(("params:", "parameters")) else catalog.get(name)
        if dataset is None or not kedro_adapter.is_versioned(dataset):
            continue
        chosen = kedro_adapter.chosen_version(dataset)
        committed = experiment.current(name, chosen)
        problem = _problem(name, chosen, committed, experiment)
        if problem is not None:
            missing.append(f"{problem}; make it with: {how_to_make(name)}")
            continue
        assert committed is not None
        assert committed.version is not None
        pin(dataset, committed, experiment)
        pins[name] = committed.version
    if missing:
        raise LineageError("\n".join(missing))
    return pins


def pin(dataset: AbstractDataset, committed: Committed, experiment: Experiment) -> None:
    """Let a versioned dataset load this version, from where its manifest says it is.

    That may be another experiment's folder, because a fork shares what was made before it.
    """
    folder = experiment.path(committed.record).parent.parent
    kedro_adapter.pin(dataset, committed.version, folder)


def _problem(
    name: str, chosen: str | None, committed: Committed | None, experiment: Experiment
) -> str | None:
    if committed is None or committed.version is None:
        return (
            f"version {chosen} of '{name}' is not committed"
            if chosen
            else f"'{name}' is not yet committed"
        )
    if committed.pruned:
        return f"version {committed.version} of '{name}' was pruned by retention"
    if not experiment.path(committed.record).exists():
        return f"'{name}' was committed, but {committed.record.path} is gone"
    return None

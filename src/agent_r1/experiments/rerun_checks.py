"""What is looked at before a stage is run again."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from agent_r1.lineage import Experiment, LineageError, Manifest
from agent_r1.lineage.staleness import dependents
from agent_r1.parameters import ParameterError
from agent_r1.storage.hashing import content_sha256

logger = logging.getLogger(__name__)


def check_inputs(experiment: Experiment, manifest: Manifest) -> None:
    """What is read again must be what was read before.

    Raises:
        LineageError: an input is gone, was changed, or was pruned.
    """
    for record in manifest.inputs:
        path = experiment.path(record)
        if record.manifest is not None:
            source = experiment.manifests.read(experiment.manifests.root / record.manifest)
            if record.dataset in source.pruned:
                raise LineageError(
                    f"'{record.dataset}' (version {record.version}), which {manifest.node} "
                    "read, was pruned by retention; rerun what made it first"
                )
        if not path.exists() or content_sha256(path) != record.sha256:
            what = "has changed since" if path.exists() else "is gone"
            raise LineageError(f"{record.path}, which {manifest.node} read, {what}")


def check_changes(changes: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Only what is asked for, and defaults beside it, may differ from what is recorded.

    Raises:
        ParameterError: something else does.
    """
    groups = {name.rpartition(".")[0] or name for name in asked}
    strange = [
        key for key in changes if not any(f"{key}.".startswith(f"{name}.") for name in groups)
    ]
    if strange:
        raise ParameterError(
            f"conf/ has parameters that the experiment was not run with: {', '.join(strange)}. "
            "Take them out, or give their recorded values by --params"
        )


def warn_of_kept_readers(pipeline: Pipeline, node: Node, changes: Iterable[str]) -> None:
    """Say which stages beside ``node`` read what is changed, and keep the results that they have.

    What ``node`` reads itself is what the rerun is about, whoever else reads it.

    Args:
        pipeline: the iteration of the node.
        node: what is run again, with all that depends on it.
        changes: dotted names of parameters.
    """
    made_again = {node.name, *dependents(node.name, [pipeline.nodes])}
    others = set(changes) - set(_read(node, changes))
    kept = {each.name: _read(each, sorted(others)) for each in pipeline.nodes}
    kept = {name: read for name, read in kept.items() if read and name not in made_again}
    if kept:
        readers = "; ".join(f"{name} ({', '.join(read)})" for name, read in kept.items())
        logger.warning(
            "these stages read parameters that are changed, and keep their results: %s. To change "
            "them too, rerun the first of them: %s",
            readers,
            next(iter(kept)).rpartition(".")[2],
        )


def _read(node: Node, changes: Iterable[str]) -> list[str]:
    """The changed parameters that are in a group which the node reads."""
    groups = tuple(
        f"{name.removeprefix('params:')}." for name in node.inputs if name.startswith("params:")
    )
    return [key for key in changes if f"{key}.".startswith(groups)]

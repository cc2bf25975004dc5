"""Checks before a stage runs again."""

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
    """Check that every input still has the content that the node read.

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
    """Check that only requested parameters, and defaults in their groups, differ from the record.

    Raises:
        ParameterError: another parameter differs.
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
    """Warn about other stages that read changed parameters but keep their results.

    Parameters that ``node`` itself reads give no warning, even if other stages read them too.

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
            "these stages also read changed parameters, but keep their results: %s. To make them "
            "again too, rerun the first of them: %s",
            readers,
            next(iter(kept)).rpartition(".")[2],
        )


def _read(node: Node, changes: Iterable[str]) -> list[str]:
    """The changed parameters in groups that the node reads."""
    groups = tuple(
        f"{name.removeprefix('params:')}." for name in node.inputs if name.startswith("params:")
    )
    return [key for key in changes if f"{key}.".startswith(groups)]

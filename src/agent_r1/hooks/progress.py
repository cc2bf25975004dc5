"""Reports a Kedro run to the progress display."""

from __future__ import annotations

from itertools import chain
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from agent_r1.display import console, progress
from agent_r1.tracking.run_record import RunRecord

SHOWN = {
    "reward/mean": "reward",
    "reward/correct": "correct",
    "validation/exact_match": "validation",
    "in_domain/exact_match": "in_domain",
    "held_out/exact_match": "held_out",
    "ood/exact_match": "ood",
}
"""Metrics on a stage's line of the progress display → their names there."""


class ProgressHooks:
    """Reports to the progress display; see `agent_r1.display.progress`."""

    def __init__(self) -> None:
        self._run: RunRecord | None = None

    @hook_impl
    def after_context_created(self) -> None:
        """Silence other packages, before they are imported."""
        console.quieten()

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Pipeline) -> None:
        """A stage begins."""
        self._run = RunRecord(run_params, pipeline)

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """A node begins."""
        progress.current().node_started(node.name)

    @hook_impl
    def after_dataset_saved(self, dataset_name: str, data: Any) -> None:
        """Keep the metrics for the stage's line."""
        assert self._run is not None
        self._run.saved(dataset_name, data)

    @hook_impl
    def after_pipeline_run(self) -> None:
        """A stage ended."""
        assert self._run is not None
        points = chain.from_iterable(self._run.points.values())
        shown = {SHOWN[p.name]: p.value for p in points if p.name in SHOWN}
        progress.current().stage_ended(self._run.stage, self._run.seconds, shown)

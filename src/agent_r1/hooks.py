"""What happens around every Kedro run: validation, pinning, manifests, tracking, console.

They are hooks, and not part of the driver, so that `kedro run --pipelines …`, a notebook's
``session.run()`` and the driver all leave the same records behind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from pydantic import BaseModel

from agent_r1.configuration import groups as parameter_groups
from agent_r1.configuration.groups import Resolved
from agent_r1.display import console, progress
from agent_r1.experiments.experiment import history_of, resolved_parameters
from agent_r1.lineage import ManifestStore, attempt, lock
from agent_r1.lineage.branches import start
from agent_r1.lineage.pinning import pin_inputs
from agent_r1.lineage.recorder import Recorder
from agent_r1.pipeline_registry import producer_command
from agent_r1.tracking.mlflow import Status, Tracker, is_child
from agent_r1.tracking.run_record import RunRecord

logger = logging.getLogger(__name__)

_LONGEST_REASON = 200
"""Characters; a database appends its statement and all values."""

SHOWN = {
    "reward/mean": "reward",
    "reward/correct": "correct",
    "validation/exact_match": "validation",
    "in_domain/exact_match": "in_domain",
    "held_out/exact_match": "held_out",
    "ood/exact_match": "ood",
}
"""Metrics on a stage's line of the progress display, and how they are called there."""


class ValidationHooks:
    """Refuses bad parameters before the first node."""

    @hook_impl(tryfirst=True)
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        """Raises `ParameterError`."""
        parameters, project = resolved_parameters(catalog), Path(run_params["project_path"])
        parameter_groups.check_references(parameters, project, pipeline.inputs())


class LineageHooks:
    """Locks the experiment, pins what a run reads, and writes a manifest per node run."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._parameters: Resolved | None = None
        self._release: Callable[[], None] = _nothing

    @hook_impl
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        """
        Raises:
            LockedError: another process works on the experiment.
            LineageError: an input was never committed.
        """
        self._parameters = resolved_parameters(catalog)
        self._release = lock.acquire(history_of(catalog).filepath.parent)
        try:
            self._recorder = self._prepare(run_params, pipeline, catalog, self._parameters)
        except BaseException:
            self._unlock()
            raise

    def _prepare(
        self,
        run_params: dict[str, Any],
        pipeline: Pipeline,
        catalog: CatalogProtocol,
        parameters: Resolved,
    ) -> Recorder:
        scalars, history = parameters.experiment, history_of(catalog)
        project = Path(run_params["project_path"])
        pin_inputs(
            pipeline,
            catalog,
            history.store,
            project,
            lambda name: producer_command(name, scalars.experiment),
        )
        capacity = attempt.current()
        branch = capacity.branch or history.book.newest() or start(parameters.flat())
        return Recorder(
            project,
            catalog,
            history.store,
            experiment=scalars.experiment,
            seed=scalars.seed,
            version=run_params["run_id"],
            environment=run_params["env"],
            book=history.book,
            branch=branch,
            recorded=parameter_groups.recorded_parameters(branch.parameters),
            advances=capacity.advances,
        )

    @hook_impl
    def before_node_run(self, node: Node, inputs: dict[str, Any]) -> dict[str, Any]:
        """The inputs are loaded: note their versions, and the parameters with their defaults.

        Returns:
            Those parameters, so that the node reads exactly what its manifest says.
        """
        assert self._recorder is not None
        assert self._parameters is not None
        names = [name for name in node.inputs if name.startswith(("params:", "parameters"))]
        resolved = {name: self._parameters.lookup(name) for name in names}
        self._recorder.begin(node, resolved)
        # Where a node's annotation is the group's model, Kedro has made one, defaults and all.
        return {k: v for k, v in resolved.items() if not isinstance(inputs[k], BaseModel)}

    @hook_impl(tryfirst=True)
    def after_dataset_saved(self, dataset_name: str, data: Any, node: Node) -> None:
        """After the last output: the manifest, which commits them all."""
        assert self._recorder is not None
        path = self._recorder.saved(node, dataset_name, data)
        if path is not None and self._recorder.is_aside(path):
            progress.current().say(
                f"{node.name}: differs from what the experiment has, so it is kept aside as "
                f"version {path.stem}"
            )

    @hook_impl
    def after_pipeline_run(self) -> None:
        """Give the lock back."""
        self._unlock()

    @hook_impl
    def on_pipeline_error(self) -> None:
        """Give the lock back."""
        self._unlock()

    def _unlock(self) -> None:
        self._release()
        self._release = _nothing


def _nothing() -> None:
    """There is no lock to give back."""


class TrackingHooks:
    """Tells MLflow; see `agent_r1.tracking.mlflow`."""

    def __init__(self) -> None:
        self._trackers: dict[tuple[str, str], Tracker] = {}
        self._tracker: Tracker | None = None
        self._run: RunRecord | None = None
        self._store: ManifestStore | None = None

    @hook_impl(trylast=True)
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        """Start the child run."""
        parameters = resolved_parameters(catalog)
        self._store = history_of(catalog).store
        self._run = RunRecord(run_params, pipeline)
        self._tracker = self._tracker_of(parameters, catalog)
        if self._tracker is not None and is_child(self._run.stage):
            everything = parameters.lookup("parameters")
            branch = attempt.current().branch
            forked = {"forked_from": branch.experiment} if branch and branch.experiment else {}
            self._tracker.open(parameters.groups["mlflow"]["experiment_name"], everything, forked)
            self._tracker.start_child(
                self._run.stage, self._run.version, self._run.nodes, everything
            )

    @hook_impl
    def after_dataset_saved(self, dataset_name: str, data: Any) -> None:
        """Keep the metrics for the end of the run."""
        if self._run is not None:
            self._run.saved(dataset_name, data)

    @hook_impl
    def after_pipeline_run(self, catalog: CatalogProtocol) -> None:
        """End the child run; attach the report to the parent."""
        self._end("FINISHED")
        assert self._run is not None
        if self._tracker is None:
            return
        complete = "report_html" in self._run.written
        if complete:
            parameters = resolved_parameters(catalog)
            self._tracker.open(
                parameters.groups["mlflow"]["experiment_name"], parameters.lookup("parameters")
            )
            files = [Path(str(catalog[name]._filepath)) for name in self._run.written]
            self._tracker.log_artifacts(files)
        if complete or not attempt.current().advances:
            self._tracker.close("FINISHED" if complete else None)

    @hook_impl
    def on_pipeline_error(self, error: BaseException) -> None:
        """The run failed, or the user gave up. MLflow may fail too, and must not hide it."""
        status: Status = "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
        try:
            self._end(status)
            if self._tracker is not None:
                self._tracker.close(status if attempt.current().advances else None)
        except Exception as failure:
            reason = " ".join(str(failure).split())[:_LONGEST_REASON]
            logger.warning("MLflow was not told that the run failed: %s", reason)

    def _end(self, status: Status) -> None:
        run, tracker, store = self._run, self._tracker, self._store
        if run is not None and tracker is not None and store is not None:
            tracker.end_child(run.stage, run.produced(store), status)

    def _tracker_of(self, parameters: Resolved, catalog: CatalogProtocol) -> Tracker | None:
        settings = parameters.groups["mlflow"]
        if not settings["enabled"]:
            return None
        assert self._run is not None
        folder = history_of(catalog).filepath.parent
        key = (str(folder), settings["tracking_uri"])
        if key not in self._trackers:
            self._trackers[key] = Tracker(
                self._run.project, folder, parameters.experiment.experiment, key[1]
            )
        return self._trackers[key]


class ProgressHooks:
    """Tells the progress display; see `agent_r1.display.progress`."""

    def __init__(self) -> None:
        self._run: RunRecord | None = None

    @hook_impl
    def after_context_created(self) -> None:
        """Nothing heavy is imported yet, so this is the time to ask for silence."""
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
        shown = {SHOWN[p.name]: p.value for p in self._run.points if p.name in SHOWN}
        progress.current().stage_ended(self._run.stage, self._run.seconds, shown)

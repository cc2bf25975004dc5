"""Reports a Kedro run to MLflow."""

from __future__ import annotations

import logging
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline

from agent_r1 import kedro_adapter
from agent_r1.experiments.experiment import experiment_of, parameters_of
from agent_r1.lineage import Experiment, attempt
from agent_r1.tracking.mlflow import Status, Tracker, is_child
from agent_r1.tracking.run_record import RunRecord

logger = logging.getLogger(__name__)

_LONGEST_REASON = 200
"""Characters. A database error includes its statement and all values."""


class TrackingHooks:
    """Reports to MLflow; see `agent_r1.tracking.mlflow`."""

    def __init__(self) -> None:
        self._trackers: dict[tuple[str, str], Tracker] = {}
        self._tracker: Tracker | None = None
        self._run: RunRecord | None = None

    @hook_impl(trylast=True)
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        """Start the child run."""
        parameters = parameters_of(catalog)
        self._run = RunRecord(run_params, pipeline)
        self._tracker = self._tracker_of(parameters["mlflow"], experiment_of(catalog))
        if self._tracker is not None and is_child(self._run.stage):
            branch = attempt.current().branch
            forked = {"forked_from": branch.experiment} if branch and branch.experiment else {}
            self._tracker.open(parameters["mlflow"]["experiment_name"], parameters, forked)
            self._tracker.start_child(self._run, parameters)

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
        complete = "report_html" in self._run.points
        if complete:
            parameters = parameters_of(catalog)
            self._tracker.open(parameters["mlflow"]["experiment_name"], parameters)
            places = (kedro_adapter.location(catalog[name]) for name in self._run.points)
            self._tracker.log_artifacts([path for path in places if path is not None])
        if complete or not attempt.current().advances:
            self._tracker.close("FINISHED" if complete else None)

    @hook_impl
    def on_pipeline_error(self, error: BaseException) -> None:
        """End the child run as failed or killed. An error of MLflow must not hide the first one."""
        status: Status = "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
        try:
            self._end(status)
            if self._tracker is not None:
                self._tracker.close(status if attempt.current().advances else None)
        except Exception as failure:
            reason = " ".join(str(failure).split())[:_LONGEST_REASON]
            logger.warning("MLflow could not record that the run failed: %s", reason)

    def _end(self, status: Status) -> None:
        if self._run is not None and self._tracker is not None:
            self._tracker.end_child(self._run, status)

    def _tracker_of(self, settings: dict[str, Any], experiment: Experiment) -> Tracker | None:
        if not settings["enabled"]:
            return None
        key = (str(experiment.folder), settings["tracking_uri"])
        if key not in self._trackers:
            self._trackers[key] = Tracker(experiment, settings["tracking_uri"])
        return self._trackers[key]

"""MLflow: a parent run per experiment, a child run per attempt at an iteration.

1. The parent has the parameters and the curves over the iterations. Its id is kept in the
   experiment's folder, so that a resumed experiment continues it.
2. A Kedro run of an iteration (or of ``base``, ``iter_00000``) is a child: its metrics by step, and
   as tags the version of every dataset it wrote and the manifest of every node; FAILED if it
   failed. MLflow appends when a step is logged twice, so a second attempt is a second child, whose
   tag ``replaces`` names the first. An attempt that was set aside adds nothing to the parent's
   curves.
3. Only what is committed is logged. If an attempt is killed before it logs, the next process logs
   it from the tables on the disk.
4. Everything goes through `MlflowClient`: no global "active run" can leak from one run into the
   next. Metrics are sent once per run, in one batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agent_r1.display.progress import is_iteration
from agent_r1.lineage import Experiment, Manifest, OutputRecord
from agent_r1.lineage.lock import one_at_a_time
from agent_r1.storage.atomic import write_json
from agent_r1.tracking.run_metrics import Point, has_points, points
from agent_r1.tracking.run_record import RunRecord, committed_by

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

Status = Literal["FINISHED", "FAILED", "KILLED"]

_BATCH = 100
"""MLflow takes at most this many parameters or tags at once, and ten times as many metrics."""
_LONGEST = 500
"""Characters of a parameter's value that are logged."""


class Tracker:
    """Tracks one experiment."""

    def __init__(self, experiment: Experiment, tracking_uri: str) -> None:
        """
        Args:
            experiment: the parent run gets its name, and the parent's id is kept in its folder.
            tracking_uri: see `agent_r1.configuration.groups.MlflowParameters`; a relative sqlite
                path is below the project.
        """
        self._experiment = experiment
        self._state = experiment.folder / "mlflow.json"
        self.tracking_uri = absolute_uri(tracking_uri, experiment.project)
        self._client: MlflowClient | None = None
        self._parent: str | None = None
        self._status = "FINISHED"
        """The parent's status after the last attempt."""
        self._child: str | None = None

    @property
    def client(self) -> MlflowClient:
        """Made on first use: importing MLflow and making a database take seconds."""
        if self._client is None:
            from mlflow.tracking import MlflowClient

            with self._alone():
                client = MlflowClient(self.tracking_uri)
                client.search_experiments(max_results=1)  # makes the tables of a new database
                self._client = client
        return self._client

    def _alone(self) -> AbstractContextManager[Any]:
        """Two processes must not create a database or an MLflow experiment at the same time."""
        return one_at_a_time(self._experiment.project / "data/.mlflow.lock")

    def open(
        self,
        mlflow_experiment: str,
        parameters: Mapping[str, Any],
        tags: Mapping[str, str] | None = None,
    ) -> str:
        """The id of the parent run; an earlier process may have made it.

        A new parent gets the parameters and the tags.
        """
        if self._parent is None:
            known = self._known_parent()
            self._parent = known or self._new_parent(mlflow_experiment, parameters, tags or {})
        return self._parent

    def start_child(self, run: RunRecord, parameters: Mapping[str, Any]) -> None:
        """Start the child run of an attempt."""
        assert self._parent is not None, "open() comes first"
        parent = self.client.get_run(self._parent)
        child = self.client.create_run(
            parent.info.experiment_id,
            run_name=run.stage,
            tags={
                "mlflow.parentRunId": self._parent,
                "stage": run.stage,
                "kedro.run_id": run.version,
                "nodes": ",".join(run.nodes),
            },
        )
        self._child = child.info.run_id
        self._log(self._child, params=as_params(parameters))

    def end_child(self, run: RunRecord, status: Status = "FINISHED") -> None:
        """Log what the attempt has committed, and end its child run."""
        if self._child is not None:
            manifests = committed_by(self._experiment.manifests, run.nodes, run.version)
            datasets = (record.dataset for each in manifests for record in each.outputs)
            points = [point for name in datasets for point in run.points.get(name, ())]
            self._tell(self.open("", {}), self._child, run.stage, manifests, points)
            self.client.set_terminated(self._child, status)
            self._child = None

    def _tell(
        self,
        parent: str,
        child: str,
        stage: str,
        manifests: Sequence[Manifest],
        points: Sequence[Point],
        logged: bool = False,
    ) -> None:
        """Log what an attempt committed; ``logged``: the parent may have it already."""
        self._log(child, points=points, tags=manifest_tags(manifests))
        if any(each.aside for each in manifests) or not stage.startswith("iter_"):
            return
        index = int(stage.removeprefix("iter_"))
        last = {point.name: point.value for point in points}  # the last step of each
        points = [Point(name, value, index) for name, value in last.items()]
        if logged or any(each.replaces for each in manifests):
            points = [point for point in points if not self._has(parent, point)]
        self._log(parent, points=points)

    def _has(self, run: str, point: Point) -> bool:
        history = self.client.get_metric_history(run, point.name)
        return any((m.step, m.value) == (point.step, point.value) for m in history)

    def log_artifacts(self, paths: list[Path]) -> None:
        """Attach files to the parent run."""
        assert self._parent is not None, "open() comes first"
        for path in paths:
            self.client.log_artifact(self._parent, str(path))

    def close(self, status: Status | None = None) -> None:
        """End the parent run; None leaves it the status it had before."""
        if self._parent is not None:
            self._status = status or self._status
            self.client.set_terminated(self._parent, self._status)
            self._save_state(is_open=False)
            self._parent = None

    def settle(self) -> None:
        """End a parent run that a killed process left open, when the experiment is complete.

        Without one, MLflow is not imported.
        """
        if self._read_state().get("open"):
            self._parent = self._known_parent()
            self.close("FINISHED")

    def _known_parent(self) -> str | None:
        from mlflow.exceptions import MlflowException

        state = self._read_state()
        if not state:
            return None
        try:
            parent = self.client.get_run(state["parent"])
        except MlflowException:  # the database was deleted, or is another one
            return None
        if parent.info.status == "RUNNING":  # its process was killed, because we hold the lock
            self._status = "KILLED"
            self._close_orphans(parent)
        else:
            self._status = parent.info.status
            self.client.update_run(parent.info.run_id, status="RUNNING")
        self._parent = parent.info.run_id
        self._save_state(is_open=True)
        return self._parent

    def _new_parent(
        self, mlflow_experiment: str, parameters: Mapping[str, Any], tags: Mapping[str, str]
    ) -> str:
        experiment_id = self._experiment_id(mlflow_experiment)
        # A process may have been killed between creating a parent and writing its id.
        mine = {"agent_r1.folder": str(self._state.parent)}
        lost = f"tags.`agent_r1.folder` = '{self._state.parent}' and attributes.status = 'RUNNING'"
        for run in self.client.search_runs([experiment_id], lost):
            self.client.set_terminated(run.info.run_id, "KILLED")
        run = self.client.create_run(experiment_id, run_name=self._experiment.name, tags=mine)
        self._parent, self._status = run.info.run_id, "FINISHED"
        self._save_state(is_open=True)
        self._log(self._parent, params=as_params(parameters), tags=tags)
        return self._parent

    def _experiment_id(self, name: str) -> str:
        client = self.client
        with self._alone():
            found = client.get_experiment_by_name(name)
            if found is not None:
                return found.experiment_id
            place = self._experiment.project / "mlartifacts" / name
            return client.create_experiment(name, place.as_uri())

    def _close_orphans(self, parent: Run) -> None:
        """Log what the children of a killed process committed, and end them."""
        mine = f"tags.`mlflow.parentRunId` = '{parent.info.run_id}'"
        running = f"{mine} and attributes.status = 'RUNNING'"
        for child in self.client.search_runs([parent.info.experiment_id], running):
            tags, run = child.data.tags, child.info.run_id
            nodes = tags["nodes"].split(",")
            manifests = committed_by(self._experiment.manifests, nodes, tags["kedro.run_id"])
            outputs = [record for each in manifests for record in each.outputs]
            points = [point for record in outputs for point in self._committed_points(record)]
            self._tell(parent.info.run_id, run, tags["stage"], manifests, points, logged=True)
            complete = len(manifests) == len(nodes)
            self.client.set_terminated(run, "FINISHED" if complete else "KILLED")

    def _committed_points(self, record: OutputRecord) -> list[Point]:
        if not has_points(record.dataset) or not self._experiment.path(record).is_file():
            return []
        return points(record.dataset, self._experiment.table(record))

    def _read_state(self) -> dict[str, Any]:
        if not self._state.is_file():
            return {}
        return json.loads(self._state.read_text(encoding="utf-8"))

    def _save_state(self, *, is_open: bool) -> None:
        write_json(self._state, {"parent": self._parent, "open": is_open})

    def _log(
        self,
        run: str,
        points: Sequence[Point] = (),
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        from mlflow.entities import Metric, Param, RunTag

        now = int(time.time() * 1000)
        metrics = [Metric(point.name, point.value, now, point.step) for point in points]
        values = [Param(key, value) for key, value in (params or {}).items()]
        marks = [RunTag(key, value) for key, value in (tags or {}).items()]
        while metrics or values or marks:
            self.client.log_batch(run, metrics[:500], values[:_BATCH], marks[:_BATCH])
            del metrics[:500], values[:_BATCH], marks[:_BATCH]


def manifest_tags(manifests: Sequence[Manifest]) -> dict[str, str]:
    """The tags of a child run that describe its node runs.

    ``dataset.<dataset>``: the version that was written. ``manifest.<node>``: the manifest's path
    and seal. ``replaces``: the versions that were current before, if any. ``aside``: one of the
    results is set aside.
    """
    tags = {f"dataset.{out.dataset}": each.version for each in manifests for out in each.outputs}
    tags |= {f"manifest.{each.stage}": f"{each.place} sha256:{each.seal}" for each in manifests}
    if replaced := sorted({each.replaces for each in manifests if each.replaces is not None}):
        tags["replaces"] = ", ".join(replaced)
    if any(each.aside for each in manifests):
        tags["aside"] = "true"
    return tags


def absolute_uri(tracking_uri: str, project: Path) -> str:
    """A sqlite URI with an absolute path; other URIs unchanged."""
    scheme = "sqlite:///"
    if not tracking_uri.startswith(scheme):
        return tracking_uri
    return f"{scheme}{project / tracking_uri.removeprefix(scheme)}"


def as_params(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested groups as ``rollout.temperature`` → text, as MLflow stores parameters."""
    flat: dict[str, str] = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping) and value:
            flat |= as_params(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = str(value)[:_LONGEST]
    return flat


def is_child(stage: str) -> bool:
    """Whether runs of this pipeline are child runs: the base policy, SFT, and iterations."""
    return stage in ("base", "iter_00000") or is_iteration(stage)

"""Locks the experiment, pins what a Kedro run reads, and writes a manifest per node run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from agent_r1.configuration.groups import Resolved, recorded_parameters
from agent_r1.display import progress
from agent_r1.experiments.experiment import experiment_of, resolved_parameters
from agent_r1.lineage import attempt
from agent_r1.lineage.branches import start
from agent_r1.lineage.pinning import pin_inputs
from agent_r1.lineage.recorder import Recorder
from agent_r1.pipeline_registry import producer_command


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
        self._release = experiment_of(catalog).take()
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
        experiment = experiment_of(catalog)
        pin_inputs(
            pipeline, catalog, experiment, lambda name: producer_command(name, experiment.name)
        )
        capacity = attempt.current()
        branch = capacity.branch or experiment.branches.newest() or start(parameters.flat())
        return Recorder(
            experiment,
            catalog,
            seed=parameters.experiment.seed,
            version=run_params["run_id"],
            environment=run_params["env"],
            branch=branch,
            recorded=recorded_parameters(branch.parameters),
            advances=capacity.advances,
        )

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Note the versions of the loaded inputs, and the parameters with their defaults."""
        assert self._recorder is not None
        assert self._parameters is not None
        names = [name for name in node.inputs if name.startswith(("params:", "parameters"))]
        self._recorder.begin(node, {name: self._parameters.lookup(name) for name in names})

    @hook_impl(tryfirst=True)
    def after_dataset_saved(self, dataset_name: str, data: Any, node: Node) -> None:
        """After the last output, write the manifest, which commits them all."""
        assert self._recorder is not None
        path = self._recorder.saved(node, dataset_name, data)
        if path is not None and self._recorder.is_aside(path):
            progress.current().say(
                f"{node.name}: differs from the experiment's result, so it is set aside as version "
                f"{path.stem}"
            )

    @hook_impl
    def after_pipeline_run(self) -> None:
        """Release the lock."""
        self._unlock()

    @hook_impl
    def on_pipeline_error(self) -> None:
        """Release the lock."""
        self._unlock()

    def _unlock(self) -> None:
        self._release()
        self._release = _nothing


def _nothing() -> None:
    """Release nothing: no lock is held."""

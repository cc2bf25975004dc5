"""Locks the experiment, pins what a Kedro run reads, and writes a manifest per node run."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from agent_r1.configuration.groups import lookup, recorded_parameters
from agent_r1.display import progress
from agent_r1.experiments.experiment import experiment_of, parameters_of
from agent_r1.kedro_adapter import is_parameter
from agent_r1.lineage import attempt
from agent_r1.lineage.branches import flatten, start
from agent_r1.lineage.pinning import pin_inputs
from agent_r1.lineage.recorder import Recorder
from agent_r1.pipeline_registry import producer_command


class LineageHooks:
    """Locks the experiment, pins what a run reads, and writes a manifest per node run."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._parameters: dict[str, Any] = {}
        self._held = ExitStack()

    @hook_impl
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        """
        Raises:
            LockedError: another process works on the experiment.
            LineageError: an input was never committed.
        """
        self._parameters = parameters_of(catalog)
        self._held.enter_context(experiment_of(catalog).lock())
        try:
            self._recorder = self._prepare(run_params, pipeline, catalog)
        except BaseException:
            self._held.close()
            raise

    def _prepare(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> Recorder:
        experiment = experiment_of(catalog)
        pin_inputs(
            pipeline, catalog, experiment, lambda name: producer_command(name, experiment.name)
        )
        run = attempt.current()
        branch = run.branch or experiment.branches.newest() or start(flatten(self._parameters))
        return Recorder(
            experiment=experiment,
            catalog=catalog,
            seed=self._parameters["seed"],
            version=run_params["run_id"],
            environment=run_params["env"],
            branch=branch,
            recorded=recorded_parameters(branch.parameters),
            advances=run.advances,
        )

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Note the versions of the loaded inputs, and the parameters with their defaults."""
        assert self._recorder is not None
        names = filter(is_parameter, node.inputs)
        self._recorder.begin(node, {name: lookup(self._parameters, name) for name in names})

    @hook_impl(tryfirst=True)
    def after_dataset_saved(self, dataset_name: str, data: Any, node: Node) -> None:
        """After the last output, write the manifest, which commits them all."""
        assert self._recorder is not None
        manifest = self._recorder.saved(node, dataset_name, data)
        if manifest is not None and manifest.aside:
            progress.current().say(
                f"{node.name}: differs from the experiment's result, so it is set aside as version "
                f"{manifest.version}"
            )

    @hook_impl
    def after_pipeline_run(self) -> None:
        """Release the lock."""
        self._held.close()

    @hook_impl
    def on_pipeline_error(self) -> None:
        """Release the lock."""
        self._held.close()

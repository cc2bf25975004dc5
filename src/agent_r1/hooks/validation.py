"""Refuses bad parameters before the first node of any Kedro run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline

from agent_r1.configuration import groups as parameter_groups
from agent_r1.experiments.experiment import resolved_parameters


class ValidationHooks:
    """Refuses bad parameters before the first node."""

    @hook_impl(tryfirst=True)
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        """Raises `ParameterError`."""
        parameters, project = resolved_parameters(catalog), Path(run_params["project_path"])
        parameter_groups.check_references(parameters, project, pipeline.inputs())

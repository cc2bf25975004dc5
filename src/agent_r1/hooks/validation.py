"""Checks the parameters before the first node of any Kedro run.

The configuration loader has validated each group (`agent_r1.configuration.loader`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from pydantic import BaseModel

from agent_r1.configuration import references
from agent_r1.experiments.experiment import parameters_of


class ValidationHooks:
    """Refuses parameters that name what does not exist, or that do not go together."""

    @hook_impl
    def after_catalog_created(self, catalog: CatalogProtocol, parameters: dict[str, Any]) -> None:
        """Offer every parameter as a node input by its name in ``conf/``: if a group is a model,
        Kedro offers the model's fields, and ``update`` has its keys in parts."""
        for group, values in parameters["parameters"].items():
            for key, value in values.model_dump().items() if isinstance(values, BaseModel) else ():
                if (name := f"params:{group}.{key}") not in parameters:
                    catalog[name] = value

    @hook_impl(tryfirst=True)
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        """Raises `ParameterError`."""
        parameters, project = parameters_of(catalog), Path(run_params["project_path"])
        references.check_references(parameters, project, pipeline.inputs())

"""Many Kedro runs in one process, with the same runtime parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from kedro.framework.project import pipelines
from kedro.framework.session.service_session import KedroServiceSession
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline

from agent_r1 import kedro_adapter
from agent_r1.configuration.loader import ProjectConfigLoader


class Session:
    """Runs pipelines of the project, one after another, with the same runtime parameters."""

    def __init__(
        self,
        project: Path,
        runtime_params: dict[str, Any],
        env: str | None = None,
        conf_source: str | None = None,
        *,
        validates: bool = True,
    ) -> None:
        """
        Args:
            project: root of the Kedro project; it must be bootstrapped, as the CLI does.
            runtime_params: the values of ``--params``.
            env: Kedro's configuration environment.
            conf_source: another configuration folder than the project's.
            validates: whether `catalog` has validated parameters; false for a command that only
                reads what is committed.
        """
        self.project = project
        self._runtime_params = runtime_params
        self._validates = validates
        self._session = KedroServiceSession.create(
            project_path=project, env=env, conf_source=conf_source
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._session.close()

    def pipeline(self, name: str) -> Pipeline:
        """A registered pipeline.

        Raises:
            KeyError: no pipeline has this name.
        """
        return pipelines[name]

    def catalog(self) -> CatalogProtocol:
        """The datasets, outside a run: nothing is pinned.

        Raises:
            ParameterError: a parameter cannot be used.
        """
        context = self._session.load_context(self._runtime_params)
        loader = context.config_loader
        assert isinstance(loader, ProjectConfigLoader)
        loader.validates = self._validates
        return kedro_adapter.catalog_of(context)

    def run(
        self,
        pipeline: str,
        nodes: Sequence[str],
        load_versions: Mapping[str, str] | None = None,
    ) -> str:
        """Run these nodes of a registered pipeline.

        Args:
            pipeline: its name.
            nodes: full names.
            load_versions: input → version; other inputs are loaded in their current version.

        Returns:
            The version of the outputs.

        Raises:
            Exception: whatever a node raised.
        """
        version = kedro_adapter.new_version()
        try:
            self._session.run(
                run_id=version,
                pipeline_names=[pipeline],
                node_names=list(nodes),
                load_versions=dict(load_versions or {}),
                runtime_params=self._runtime_params,
            )
        except KeyboardInterrupt as interrupt:
            kedro_adapter.report_interrupt(self._session, interrupt)
            raise
        return version

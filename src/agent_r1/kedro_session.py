"""The one place that knows Kedro's session: many runs in one process.

`KedroServiceSession` "may occasionally contain breaking changes", so everything that the driver
needs of it goes through `Session`, and a contract test runs against the installed Kedro.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kedro.framework.project import pipelines, settings
from kedro.framework.session.service_session import KedroServiceSession
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline


class Session:
    """Runs pipelines of the project, one after another, with the same runtime parameters."""

    def __init__(
        self,
        project: Path,
        runtime_params: dict[str, Any],
        env: str | None = None,
        conf_source: str | None = None,
    ) -> None:
        """
        Args:
            project: root of the Kedro project; it must be bootstrapped, as the CLI does.
            runtime_params: what ``--params`` says.
            env: Kedro's configuration environment.
            conf_source: another configuration folder than the project's.
        """
        self._runtime_params = runtime_params
        self._session = KedroServiceSession.create(
            project_path=project, env=env, conf_source=conf_source
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.close()

    def pipeline(self, name: str) -> Pipeline:
        """A registered pipeline.

        Raises:
            KeyError: there is none of that name.
        """
        return pipelines[name]

    def catalog(self) -> CatalogProtocol:
        """The datasets, without any run: nothing is pinned."""
        context = self._session.load_context(self._runtime_params)
        context._pipelines_to_validate = []
        return context._get_catalog(catalog_class=settings.DATA_CATALOG_CLASS)

    def load(self, dataset: str, version: str | None) -> Any:
        """A dataset in this version."""
        return self.catalog().load(dataset, version)

    def run(self, pipeline: str, nodes: Sequence[str]) -> None:
        """Run these nodes of a registered pipeline.

        Raises:
            Exception: whatever a node raised.
        """
        self._session.run(
            pipeline_names=[pipeline],
            node_names=list(nodes),
            runtime_params=self._runtime_params,
        )

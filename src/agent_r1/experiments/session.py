"""The one place that knows Kedro's session: many runs in one process.

`KedroServiceSession` "may occasionally contain breaking changes", so everything that the driver
needs of it goes through `Session`, and a contract test runs against the installed Kedro.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kedro.framework.project import pipelines, settings
from kedro.framework.session.service_session import KedroServiceSession
from kedro.io import CatalogProtocol
from kedro.io.core import generate_timestamp
from kedro.pipeline import Pipeline

from agent_r1.lineage import Committed
from agent_r1.lineage.pinning import pin


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
        self.project = project
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

    def load(self, committed: Committed) -> Any:
        """A dataset in this version."""
        dataset = self.catalog()[committed.record.dataset]
        pin(dataset, committed, self.project)
        return dataset.load()

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
            load_versions: input → version; the current ones of the others.

        Returns:
            The version of what it saved.

        Raises:
            Exception: whatever a node raised.
        """
        version = generate_timestamp()
        try:
            self._session.run(
                run_id=version,
                pipeline_names=[pipeline],
                node_names=list(nodes),
                load_versions=dict(load_versions or {}),
                runtime_params=self._runtime_params,
            )
        except KeyboardInterrupt as interrupt:
            self._tell_hooks(interrupt)
            raise
        return version

    def _tell_hooks(self, interrupt: KeyboardInterrupt) -> None:
        """Kedro tells its hooks of an `Exception` only, and a user who gives up is none."""
        self._session._hook_manager.hook.on_pipeline_error(
            error=interrupt, run_params={}, pipeline=Pipeline([]), catalog=None
        )

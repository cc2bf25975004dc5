"""The one door to what Kedro does not promise to keep: private names, and what "may change".

Written for Kedro 1.7 (``kedro~=1.7.0``). `tests/test_kedro_adapter.py` holds each part against the
installed Kedro, so an upgrade fails there, by name, before it fails anywhere else. Everything that
Kedro documents (hooks, `Pipeline`, `AbstractDataset`, `settings`) is imported where it is used.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import click
from kedro.config import OmegaConfigLoader
from kedro.framework.project import settings
from kedro.io import AbstractDataset, AbstractVersionedDataset, CatalogProtocol, Version
from kedro.io.core import generate_timestamp
from kedro.io.core import is_parameter as is_parameter
from omegaconf import DictConfig

VERSION = re.compile(r"\d{4}-\d\d-\d\dT\d\d\.\d\d\.\d\d\.\d{3}Z")
"""Kedro's save versions: UTC timestamps, so that a later one sorts after an earlier one."""


def new_version() -> str:
    """A save version for now; see `VERSION`."""
    return generate_timestamp()


# ------------------------------------------------------------------------------- datasets


class VersionedDataset(AbstractVersionedDataset):
    """Kedro's versioned dataset, where a subclass may say which version is current.

    Kedro takes the newest version on the disk. That may be what a crash left behind, or a result
    that was set aside.
    """

    def __init__(self, filepath: str, version: Version | None) -> None:
        """
        Args:
            filepath: where the dataset is; with versions, the folder of the versions.
            version: set by Kedro for ``versioned: true``.
        """
        super().__init__(PurePosixPath(filepath), version)
        self._saved: str | None = None

    @abstractmethod
    def _current(self) -> tuple[str, Path] | None:
        """The version to load when none is pinned, and where it is; None leaves it to Kedro.

        Raises:
            VersionNotFoundError: nothing may be loaded.
        """

    def note_saved(self) -> None:
        """What was just saved is what an unpinned load reads next: its manifest comes later."""
        self._saved = self.resolve_save_version()

    def _fetch_latest_load_version(self) -> str:
        if self._saved is not None:
            return self._saved
        current = self._current()
        return super()._fetch_latest_load_version() if current is None else current[0]

    def _get_load_path(self) -> PurePosixPath:
        pinned = not self._version or self._version.load or self._saved
        current = None if pinned else self._current()
        return super()._get_load_path() if current is None else PurePosixPath(current[1])


def is_versioned(dataset: AbstractDataset) -> bool:
    """Whether the catalog says ``versioned: true``."""
    return isinstance(dataset, AbstractVersionedDataset) and dataset._version is not None


def chosen_version(dataset: AbstractDataset) -> str | None:
    """The load version that a user pinned, such as by ``--load-versions``."""
    assert isinstance(dataset, AbstractVersionedDataset)
    return dataset._version.load if dataset._version else None


def pin(dataset: AbstractDataset, version: str | None, folder: Path) -> None:
    """Let a versioned dataset load this version from ``folder``, which holds its versions."""
    assert isinstance(dataset, AbstractVersionedDataset)
    assert dataset._version is not None
    dataset._filepath = PurePosixPath(folder)
    dataset._version = Version(version, dataset._version.save)
    dataset._clear_version_cache()


def location(dataset: AbstractDataset, version: str | None = None) -> Path | None:
    """Where a dataset is on the disk; None if it is in memory.

    Args:
        dataset: of any class.
        version: of a versioned dataset; None gives the folder of its versions.
    """
    filepath = getattr(dataset, "_filepath", None)
    if filepath is None:
        return None
    path = Path(str(filepath))
    return path / version / path.name if version and is_versioned(dataset) else path


# -------------------------------------------------------------------------- configuration


class LayeredConfigLoader(OmegaConfigLoader):
    """Kedro's configuration loader with two more steps, which a subclass fills in."""

    def lay_over_base(self, base: Sequence[DictConfig], environment: Sequence[DictConfig]) -> None:
        """Change the parameters of ``conf/base`` before those of the environment go over them.

        Args:
            base: the content of each parameters file of ``conf/base``; changed in place.
            environment: the same of ``conf/local`` or of ``--env``.
        """

    def complete_catalog(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        """The catalog's entries, merged and resolved, as datasets are made of them."""
        return dict(entries)

    def __getitem__(self, key: str) -> dict[str, Any]:
        values = super().__getitem__(key)
        return self.complete_catalog(values) if key == "catalog" else values

    def _read_raw_config(self, key: str) -> tuple[Any, ...]:
        raw = super()._read_raw_config(key)
        if key == "parameters":
            self.lay_over_base(list(raw[0].values()), list(raw[1].values()))
        return raw


# -------------------------------------------------------------------------------- session


def catalog_of(context: Any) -> CatalogProtocol:
    """The datasets of a `KedroContext` without a run: no parameter is validated, nothing pinned."""
    context._pipelines_to_validate = []
    return context._get_catalog(catalog_class=settings.DATA_CATALOG_CLASS)


def report_interrupt(session: Any, interrupt: KeyboardInterrupt) -> None:
    """Call ``on_pipeline_error`` of all hooks of a `KedroServiceSession`.

    Kedro calls it for `Exception` only; `KeyboardInterrupt` is not one.
    """
    from kedro.pipeline import Pipeline

    session._hook_manager.hook.on_pipeline_error(
        error=interrupt, run_params={}, pipeline=Pipeline([]), catalog=None
    )


# --------------------------------------------------------------------------- command line


def run_command() -> click.Command:
    """Kedro's own ``kedro run``; its callback takes one keyword argument per option."""
    from kedro.framework.cli.project import run

    return run


def params_option() -> click.Parameter:
    """Kedro's ``--params``, with its parser."""
    return next(option for option in run_command().params if option.name == "params")

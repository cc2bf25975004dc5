"""What was written and never committed: a crash's half-written files, and a dead process's staging.

Nothing reads them. They are removed when the experiment runs next, by the holder of its lock.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent_r1.lineage.store import ManifestStore
from agent_r1.storage.atomic import PART
from agent_r1.storage.staging import STAGING, abandoned

VERSION = re.compile(r"\d{4}-\d\d-\d\dT\d\d\.\d\d\.\d\d\.\d{3}Z")
"""Kedro's save versions. Folders of other names are the user's, and left alone."""


def uncommitted(project: Path, experiment: str, store: ManifestStore) -> list[Path]:
    """Versions of the experiment's datasets that no manifest names, those that were to be pruned,
    and temporary files.

    Raises:
        LineageError: a manifest cannot be read, so what it commits is not known.
    """
    known: dict[Path, bool] = {}
    for _, manifest in store.all():
        for record in manifest.outputs:
            pruned = record.dataset in manifest.pruned
            known[(project / record.path).parent] = not pruned
    return [path for path in _candidates(project, experiment) if not known.get(path, False)]


def remove(paths: list[Path], project: Path) -> int:
    """Delete what `uncommitted` found, and abandoned staging folders. Returns the bytes freed."""
    doomed = [*paths, *abandoned(project / STAGING)]
    freed = sum(_size(path) for path in doomed)
    for path in doomed:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        _remove_empty(path.parent)
    return freed


def _candidates(project: Path, experiment: str) -> Iterator[Path]:
    for layer in sorted((project / "data").glob("0[2-8]_*")):
        yield from _below(layer / experiment)


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith(".") and path.name.endswith(PART):
            yield path
        elif path.is_dir() and not path.is_symlink():
            if VERSION.fullmatch(path.name):
                yield path
            else:
                yield from _below(path)


def _remove_empty(folder: Path) -> None:
    """A dataset's folder that has no version left."""
    with suppress(OSError):
        folder.rmdir()


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())

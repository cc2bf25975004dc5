"""Files that were written and never committed: by a crash, or staged by a process that is dead.

Nothing reads them. The next run of the experiment removes them, while it holds the lock.
"""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from kedro.io import CatalogProtocol

from agent_r1 import kedro_adapter
from agent_r1.lineage.experiment import Experiment
from agent_r1.storage.atomic import PART
from agent_r1.storage.staging import STAGING, abandoned

_ANY = "any-iteration"
"""Stands for an iteration's name, to find the datasets of all of them."""
_HALF = f".*{PART}"


def places(catalog: CatalogProtocol, datasets: Iterable[str]) -> list[Path]:
    """The folders of versions that these datasets have on the disk, in every iteration.

    Of an iteration's dataset, ``datasets`` has the full name in any one iteration.
    """
    found: set[Path] = set()
    for name in {_in_any_iteration(name) for name in datasets}:
        dataset = catalog.get(name)
        path = kedro_adapter.location(dataset) if dataset is not None else None
        if path is not None:
            pattern = glob.escape(str(path)).replace(_ANY, "*")
            found.update(Path(place) for place in glob.glob(pattern))
    return sorted(found)


def uncommitted(experiment: Experiment, places: Iterable[Path]) -> list[Path]:
    """Versions that no manifest names, versions that were to be pruned, and temporary files.

    Raises:
        LineageError: a manifest cannot be read, so what it commits is unknown.
    """
    known = {
        experiment.path(record).parent: record.dataset not in manifest.pruned
        for _, manifest in experiment.manifests.all()
        for record in manifest.outputs
    }
    candidates = {path for place in places for path in _candidates(place)}
    candidates.update(experiment.folder.rglob(_HALF))
    return [path for path in sorted(candidates) if not known.get(path, False)]


def remove(paths: list[Path], project: Path) -> int:
    """Delete what `uncommitted` found, and abandoned staging folders. Returns the bytes freed."""
    doomed = [*paths, *abandoned(project / STAGING)]
    freed = sum(_size(path) for path in doomed)
    for path in doomed:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        with suppress(OSError):  # a dataset's folder that has no version left
            path.parent.rmdir()
    return freed


def _in_any_iteration(name: str) -> str:
    namespace, dot, rest = name.rpartition(".")
    return f"{_ANY}{dot}{rest}" if namespace else name


def _candidates(place: Path) -> Iterator[Path]:
    """What may be left of a dataset. Folders with other names than a version's are the user's."""
    yield from place.glob(_HALF)
    for path in place.iterdir() if place.is_dir() else ():
        if path.is_dir() and not path.is_symlink() and kedro_adapter.VERSION.fullmatch(path.name):
            yield path


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())

"""The manifests of one experiment on disk, and which version of a dataset they commit.

``<root>/<iteration>/<node>/<version>.json``. The iteration is the node's namespace (``iter_00003``,
``base``), or ``experiment`` for nodes outside the iterations; the version is the attempt. Listing
one iteration reads one folder, however many iterations there are.

The current version of a dataset is the newest that is not set aside (`Manifest.aside`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agent_r1.errors import UserError
from agent_r1.lineage.manifest import UNNAMESPACED, Manifest, OutputRecord, iteration_of
from agent_r1.storage.atomic import strict_json, write_json


class LineageError(UserError, RuntimeError):
    """A manifest cannot be read, or a required dataset is not committed."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A version of a dataset, and the manifest that commits it."""

    record: OutputRecord
    manifest: Path
    pruned: bool = False
    """Whether retention has deleted it."""

    @property
    def version(self) -> str | None:
        """None for a dataset without versions."""
        return self.record.version


class ManifestStore:
    """Reads and writes the manifests below ``root``."""

    def __init__(self, root: str | Path) -> None:
        """``root`` need not exist yet."""
        self.root = Path(root)

    def write(self, manifest: Manifest) -> Path:
        """Commit the outputs of a node run, after all of them are on the disk.

        Raises:
            LineageError: this node run already has a manifest; history is not rewritten.
        """
        path = self.root / manifest.place
        if path.exists():
            raise LineageError(f"{path} exists; a node run is recorded once")
        write_json(path, manifest.to_json())
        return path

    def adopt(self, path: Path, root: Path) -> Path:
        """Commit what another experiment's manifest commits, without copying the data.

        The manifest is copied byte for byte to the same place below this root, so that later
        manifests still chain to it. Its outputs stay where they are.
        """
        target = self.root / path.relative_to(root)
        write_json(target, json.loads(path.read_text(encoding="utf-8")))
        return target

    def mark_pruned(self, path: Path, datasets: Collection[str]) -> None:
        """Note in a manifest that these outputs are deleted, or will be next."""
        manifest = self.read(path)
        pruned = tuple(sorted({*manifest.pruned, *datasets}))
        if pruned != manifest.pruned:
            write_json(path, dataclasses.replace(manifest, pruned=pruned).to_json())

    def read(self, path: Path) -> Manifest:
        """One manifest.

        Raises:
            LineageError: the file is missing, is not a manifest, or was edited.
        """
        try:
            status = path.stat()
            return _read(path, status.st_mtime_ns, status.st_size, status.st_ino)
        except (OSError, ValueError) as error:
            raise LineageError(f"cannot read the manifest {path}: {error}") from error

    def paths(self, node: str) -> list[Path]:
        """The manifests of a node, newest version first, including those set aside."""
        return _newest_first(self.root / iteration_of(node) / node.rpartition(".")[2])

    def current(self, node: str) -> Path | None:
        """The path of the node's newest manifest that is not set aside."""
        return next((path for path in self.paths(node) if not self.read(path).aside), None)

    def newest(self, node: str) -> Manifest | None:
        """The current manifest of a node; None if the node never completed."""
        path = self.current(node)
        return self.read(path) if path else None

    def committed(self, dataset: str, version: str | None = None) -> Committed | None:
        """The current (or the given) committed version of a dataset; None if there is none."""
        folder = self.root / iteration_of(dataset)
        nodes = sorted(folder.iterdir()) if folder.is_dir() else []
        found = filter(None, (self._of_node(node, dataset, version) for node in nodes))
        # Kedro's versions are UTC timestamps: later sorts after earlier.
        return max(found, key=lambda committed: committed.manifest.stem, default=None)

    def iterations(self) -> list[str]:
        """The iterations that have manifests, in order; without `UNNAMESPACED`."""
        names = (folder.name for folder in self.root.glob("*/"))
        return sorted(name for name in names if name != UNNAMESPACED)

    def every_path(self, iteration: str = "*") -> list[Path]:
        """Every manifest's path (of one iteration), by iteration, node and version."""
        return sorted(self.root.glob(f"{iteration}/*/*.json"))

    def all(self) -> Iterator[tuple[Path, Manifest]]:
        """Every manifest with its path, in the order of `every_path`."""
        for path in self.every_path():
            yield path, self.read(path)

    def name(self, path: Path) -> str:
        """A manifest's path below the root, by which others name it."""
        return path.relative_to(self.root).as_posix()

    def _of_node(self, folder: Path, dataset: str, version: str | None) -> Committed | None:
        for path in _newest_first(folder):
            manifest = self.read(path)
            record = manifest.output(dataset)
            chosen = not manifest.aside if version is None else record and record.version == version
            if record and chosen:
                return Committed(record, path, dataset in manifest.pruned)
        return None


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True)


@lru_cache(maxsize=16384)
def _read(path: Path, modified: int, size: int, inode: int) -> Manifest:
    """A manifest, parsed once: the file is replaced, never changed in place."""
    text = path.read_text(encoding="utf-8")
    manifest = Manifest.from_json(json.loads(text))
    if strict_json(manifest.to_json()) != text:
        raise ValueError("its text was edited")
    return manifest

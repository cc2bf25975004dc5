"""The manifests of one experiment on disk, and which version of a dataset they commit.

``<root>/<iteration>/<node>/<version>.json``, where the iteration is the node's namespace
(``iter_00003``, ``base``) or ``experiment`` for what stands outside the iterations, and the version
is the attempt. Listing one iteration reads one folder, however many iterations there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_r1.hashing import file_sha256
from agent_r1.lineage.manifest import Manifest, OutputRecord
from agent_r1.persistence import write_json

UNNAMESPACED = "experiment"
"""Folder of the manifests of nodes that belong to no iteration."""


class LineageError(RuntimeError):
    """A manifest cannot be read, or a dataset that is needed was never committed."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A version of a dataset, and the manifest that vouches for it."""

    record: OutputRecord
    manifest: Path

    @property
    def version(self) -> str | None:
        """None for a dataset without versions."""
        return self.record.version


def iteration_of(name: str) -> str:
    """The folder that a dataset's or node's manifests are in: ``iter_00003.rewards`` → that."""
    namespace, _, _ = name.rpartition(".")
    return namespace or UNNAMESPACED


class ManifestStore:
    """Reads and writes the manifests below ``root``."""

    def __init__(self, root: str | Path) -> None:
        """``root`` need not exist yet."""
        self.root = Path(root)

    def write(self, manifest: Manifest) -> Path:
        """Commit the outputs of a node run: the last thing that happens to them.

        Raises:
            LineageError: this node run has a manifest already; history is not rewritten.
        """
        path = self._folder(manifest.node) / f"{manifest.version}.json"
        if path.exists():
            raise LineageError(f"{path} exists; a node run is recorded once")
        write_json(path, manifest.to_json())
        return path

    def read(self, path: Path) -> Manifest:
        """One manifest.

        Raises:
            LineageError: the file is missing or is not a manifest.
        """
        try:
            return Manifest.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise LineageError(f"cannot read the manifest {path}: {error}") from error

    def paths(self, node: str) -> list[Path]:
        """The manifests of a node, newest version first."""
        return sorted(self._folder(node).glob("*.json"), key=lambda path: path.name, reverse=True)

    def newest(self, node: str) -> Manifest | None:
        """The newest manifest of a node; None if it never completed."""
        paths = self.paths(node)
        return self.read(paths[0]) if paths else None

    def committed(self, dataset: str, version: str | None = None) -> Committed | None:
        """The newest (or the given) committed version of a dataset; None if there is none."""
        found: Committed | None = None
        folder = self.root / iteration_of(dataset)
        for node in sorted(folder.iterdir()) if folder.is_dir() else ():
            candidate = self._of_node(node, dataset, version)
            if candidate and (found is None or _age(candidate) > _age(found)):
                found = candidate
        return found

    def iterations(self) -> list[str]:
        """The iterations that have manifests, in order; without `UNNAMESPACED`."""
        if not self.root.is_dir():
            return []
        names = (folder.name for folder in self.root.iterdir() if folder.is_dir())
        return sorted(name for name in names if name != UNNAMESPACED)

    def all(self) -> Iterator[tuple[Path, Manifest]]:
        """Every manifest with its path, by iteration, node and version."""
        for path in sorted(self.root.glob("*/*/*.json")):
            yield path, self.read(path)

    def reference(self, path: Path) -> tuple[str, str]:
        """How other manifests name this one: its path below the root, and its sha256."""
        return path.relative_to(self.root).as_posix(), file_sha256(path)

    def _folder(self, node: str) -> Path:
        return self.root / iteration_of(node) / node.rpartition(".")[2]

    def _of_node(self, folder: Path, dataset: str, version: str | None) -> Committed | None:
        for path in sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True):
            record = self.read(path).output(dataset)
            if record and (version is None or record.version == version):
                return Committed(record, path)
        return None


def _age(committed: Committed) -> str:
    """Kedro's versions are UTC timestamps: later sorts after earlier."""
    return committed.manifest.stem

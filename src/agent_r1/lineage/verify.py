"""Compare everything on the disk with its manifests.

1. Every manifest matches its seal, is at the path that its content names, and has the parameters of
   its branch.
2. Every input of a manifest is an output of the manifest that it names, with the same sha256. So
   later manifests expose one that was replaced.
3. Every output still has the bytes that were hashed when it was committed. One that retention
   pruned may be gone. A file that every run replaces has the bytes of the newest run.
4. Raw data has the bytes that its newest readers read.

Nothing is changed. Threads hash in parallel: reading and hashing release Python's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from agent_r1.lineage.branches import ABSENT, Branch
from agent_r1.lineage.experiment import Experiment
from agent_r1.lineage.manifest import InputRecord, Manifest
from agent_r1.lineage.store import LineageError
from agent_r1.storage.atomic import strict_json
from agent_r1.storage.hashing import MARKER, content_sha256, marker_of

OnProgress = Callable[[int, int], None]
"""Called with (files checked, files to check)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference."""

    kind: str
    """``manifest``, ``chain``, ``branch``, ``missing``, ``changed``, ``raw``."""
    path: str
    """Of the file or folder, relative to the project."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass
class Verification:
    """What was checked, and what differs."""

    manifests: int = 0
    files: int = 0
    """Datasets and raw files that were hashed."""
    pruned: int = 0
    """Outputs that retention has deleted."""
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Check:
    """One path that must have one hash."""

    path: Path
    sha256: str
    said_by: str
    raw: bool = False


def verify(experiment: Experiment, on_progress: OnProgress | None = None) -> Verification:
    """Check an experiment; see the module's docstring, and `OnProgress`."""
    verifier = _Verifier(experiment)
    verifier.run(on_progress)
    return verifier.result


class _Verifier:
    def __init__(self, experiment: Experiment) -> None:
        self.result = Verification()
        self._experiment = experiment
        self._store = experiment.manifests
        self._manifests: dict[Path, Manifest] = {}
        """Those that can be read."""

    def run(self, on_progress: OnProgress | None) -> None:
        self._check_manifests()
        self._check_branches()
        self._check_chain()
        checks = self._checks()
        self.result.files = len(checks)
        self._check_content(checks, on_progress)

    def _found(self, kind: str, path: Path, message: str) -> None:
        self.result.findings.append(Finding(kind, self._experiment.relative(path), message))

    def _check_manifests(self) -> None:
        paths = self._store.every_path()
        self.result.manifests = len(paths)
        for path in paths:
            try:
                self._manifests[path] = self._store.read(path)
            except LineageError as error:
                self._found("manifest", path, str(error.__cause__))
        for path, manifest in self._manifests.items():
            if self._store.name(path) != manifest.place:
                self._found("manifest", path, f"is the manifest of {manifest.place}")

    def _check_branches(self) -> None:
        book = self._experiment.branches
        try:
            branches = {branch.index: branch for branch in book.all()}
        except LineageError as error:
            self._found("branch", book.folder, str(error))
            return
        for path, manifest in self._manifests.items():
            branch = branches.get(manifest.branch)
            if branch is None:
                self._found("branch", path, f"its branch {manifest.branch} is missing")
            elif not manifest.aside:
                self._check_parameters(path, manifest, branch)

    def _check_parameters(self, path: Path, manifest: Manifest, branch: Branch) -> None:
        for name, value in manifest.parameters.items():
            for key, (recorded, _) in branch.differing(name, value).items():
                if recorded != ABSENT:  # else newer than the branch: only a default continues it
                    self._found("branch", path, f"'{key}' differs from its branch")

    def _check_chain(self) -> None:
        for path, manifest in self._manifests.items():
            for record in manifest.inputs:
                if record.manifest is not None:
                    self._check_source(self._store.name(path), record, record.manifest)

    def _check_source(self, reader: str, record: InputRecord, manifest: str) -> None:
        path = self._store.root / manifest
        if not path.is_file():
            self._found("chain", path, f"is gone; {reader} names it")
        elif path in self._manifests:  # an unreadable one is reported already
            source = self._manifests[path]
            output = source.output(record.dataset)
            if source.seal != record.manifest_sha256:
                message = f"is not the manifest that {reader} names: it was replaced"
                self._found("chain", path, message)
            elif output is None or output.sha256 != record.sha256:
                self._found(
                    "chain", path, f"did not write what {reader} read as '{record.dataset}'"
                )

    def _checks(self) -> list[_Check]:
        """What to hash, each path once; counts the outputs that are pruned."""
        checks: dict[tuple[str, str], _Check] = {}
        replaced: dict[str, _Check] = {}
        path_of = self._experiment.path
        for path, manifest in sorted(self._manifests.items(), key=lambda item: item[0].name):
            said_by = self._store.name(path)
            for record in manifest.outputs:
                if record.dataset in manifest.pruned:
                    self.result.pruned += 1
                    continue
                check = _Check(path_of(record), record.sha256, said_by)
                if record.version is None:
                    replaced[record.path] = check  # the newest comes last
                else:
                    checks[(record.path, record.sha256)] = check
            for read in manifest.inputs:
                if read.manifest is None:
                    replaced[read.path] = _Check(path_of(read), read.sha256, said_by, raw=True)
        return [*checks.values(), *replaced.values()]

    def _check_content(self, checks: list[_Check], on_progress: OnProgress | None) -> None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            problems = zip(checks, pool.map(_problem, checks), strict=True)
            for done, (check, message) in enumerate(problems, start=1):
                if on_progress is not None:
                    on_progress(done, len(checks))
                if message is not None:
                    kind = "changed" if check.path.exists() else "missing"
                    self._found("raw" if check.raw else kind, check.path, message)


def _problem(check: _Check) -> str | None:
    if not check.path.exists():
        return f"is gone; {check.said_by} names it"
    try:
        sha256 = content_sha256(check.path)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if sha256 != check.sha256:
        return f"has changed: sha256 {sha256[:12]}, but {check.said_by} says {check.sha256[:12]}"
    if check.path.is_dir() and not check.raw:
        return _marker_problem(check.path)
    return None


def _marker_problem(folder: Path) -> str | None:
    marker = folder / MARKER
    if not marker.is_file():
        return f"its marker {MARKER} is gone"
    if marker.read_bytes() != strict_json(marker_of(folder)).encode():
        return f"its marker {MARKER} has changed"
    return None

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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from agent_r1.lineage.branches import ABSENT, Branch, BranchBook
from agent_r1.lineage.experiment import Experiment
from agent_r1.lineage.manifest import Manifest
from agent_r1.lineage.store import LineageError, ManifestStore
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
    project, store, book = experiment.project, experiment.manifests, experiment.branches
    result = Verification()
    manifests = dict(_readable(project, store, result))
    result.manifests = len(store.every_path())
    result.findings += _places(project, store, manifests)
    result.findings += _branches(project, store, book, manifests)
    result.findings += _chain(project, store, manifests)
    checks, result.pruned = _checks(project, store, manifests)
    result.files = len(checks)
    result.findings += _hash(project, checks, on_progress)
    return result


def _readable(
    project: Path, store: ManifestStore, result: Verification
) -> Iterator[tuple[Path, Manifest]]:
    for path in store.every_path():
        try:
            yield path, store.read(path)
        except LineageError as error:
            result.findings.append(_finding("manifest", project, path, str(error.__cause__)))


def _places(
    project: Path, store: ManifestStore, manifests: Mapping[Path, Manifest]
) -> Iterator[Finding]:
    for path, manifest in manifests.items():
        place = Path(manifest.iteration, manifest.stage, f"{manifest.version}.json")
        if path.relative_to(store.root) != place:
            yield _finding("manifest", project, path, f"is the manifest of {place}")


def _branches(
    project: Path, store: ManifestStore, book: BranchBook, manifests: Mapping[Path, Manifest]
) -> Iterator[Finding]:
    try:
        branches = {branch.index: branch for branch in book.all()}
    except LineageError as error:
        yield _finding("branch", project, book.folder, str(error))
        return
    for path, manifest in manifests.items():
        branch = branches.get(manifest.branch)
        if branch is None:
            yield _finding("branch", project, path, f"its branch {manifest.branch} is missing")
        elif not manifest.aside:
            yield from _parameters(project, path, manifest, branch)


def _parameters(project: Path, path: Path, manifest: Manifest, branch: Branch) -> Iterator[Finding]:
    for name, value in manifest.parameters.items():
        for key, (recorded, _) in branch.differing(name, value).items():
            if recorded == ABSENT:  # newer than the branch, which only a default can continue
                continue
            yield _finding("branch", project, path, f"'{key}' differs from its branch")


def _chain(
    project: Path, store: ManifestStore, manifests: Mapping[Path, Manifest]
) -> Iterator[Finding]:
    for path, manifest in manifests.items():
        for record in manifest.inputs:
            if record.manifest is None:
                continue
            source = store.root / record.manifest
            if not source.is_file():
                yield _finding("chain", project, source, f"is gone; {_short(store, path)} names it")
                continue
            made_by = manifests.get(source)
            if made_by is None:  # unreadable, which `_readable` reports
                continue
            output = made_by.output(record.dataset)
            if made_by.seal != record.manifest_sha256:
                message = f"is not the manifest that {_short(store, path)} names: it was replaced"
                yield _finding("chain", project, source, message)
            elif output is None or output.sha256 != record.sha256:
                message = f"did not write what {_short(store, path)} read as '{record.dataset}'"
                yield _finding("chain", project, source, message)


def _checks(
    project: Path, store: ManifestStore, manifests: Mapping[Path, Manifest]
) -> tuple[list[_Check], int]:
    """What to hash, each path once; and how many outputs are pruned."""
    checks: dict[tuple[str, str], _Check] = {}
    replaced: dict[str, _Check] = {}
    pruned = 0
    for path, manifest in sorted(manifests.items(), key=lambda item: item[0].name):
        said_by = _short(store, path)
        for record in manifest.outputs:
            if record.dataset in manifest.pruned:
                pruned += 1
                continue
            check = _Check(project / record.path, record.sha256, said_by)
            if record.version is None:
                replaced[record.path] = check  # the newest comes last
            else:
                checks[(record.path, record.sha256)] = check
        for read in manifest.inputs:
            if read.manifest is None:
                replaced[read.path] = _Check(project / read.path, read.sha256, said_by, raw=True)
    return [*checks.values(), *replaced.values()], pruned


def _hash(
    project: Path, checks: Iterable[_Check], on_progress: OnProgress | None
) -> Iterator[Finding]:
    checks = list(checks)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, (check, message) in enumerate(
            zip(checks, pool.map(_problem, checks), strict=True), start=1
        ):
            if on_progress is not None:
                on_progress(done, len(checks))
            if message is not None:
                gone = not check.path.exists()
                kind = "raw" if check.raw else "missing" if gone else "changed"
                yield _finding(kind, project, check.path, message)


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


def summary(findings: Iterable[Finding]) -> str:
    """``2 changed, 1 missing``."""
    counts = Counter(finding.kind for finding in findings)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def _finding(kind: str, project: Path, path: Path, message: str) -> Finding:
    try:
        shown = path.relative_to(project)
    except ValueError:
        shown = path
    return Finding(kind, shown.as_posix(), message)


def _short(store: ManifestStore, path: Path) -> str:
    return path.relative_to(store.root).as_posix()

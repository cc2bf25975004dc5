"""Which iterations keep their checkpoints.

A rule keeps an iteration's checkpoints: policy, critic and trainer state. Tables are always kept.
Never pruned are ``base`` and ``iter_00000``, from which everything starts, the newest iteration,
and whatever a manifest of the newest iteration read.

Pruning has two steps: the manifest notes it, then the folder is deleted. A crash in between leaves
a folder that the next run removes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from agent_r1.lineage.experiment import Experiment
from agent_r1.lineage.manifest import Manifest, OutputRecord
from agent_r1.parameters import Parameters
from agent_r1.storage.hashing import MARKER

_ITERATION = re.compile(r"iter_(\d+)")


class RetentionParameters(Parameters):
    """``retention`` in ``conf/``. All null keeps everything; otherwise any rule can keep."""

    keep_last: int | None = Field(default=None, ge=1)
    """Keep this many of the newest iterations."""
    keep_every: int | None = Field(default=None, ge=1)
    """Keep each iteration whose number is a multiple of this."""
    keep_best: int | None = Field(default=None, ge=1)
    """Keep this many with the best exact match on the validation split."""

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is ever pruned."""
        return self.keep_last is None and self.keep_every is None and self.keep_best is None


def kept(
    iterations: Sequence[int], parameters: RetentionParameters, scores: Mapping[int, float]
) -> set[int]:
    """The iterations that a rule keeps.

    Args:
        iterations: those that have a policy.
        parameters: the rules.
        scores: iteration → validation score, for those that were validated. Of equal scores, the
            earlier iteration is better.
    """
    if parameters.keeps_all:
        return set(iterations)
    ordered = sorted(iterations)
    keep: set[int] = set()
    if parameters.keep_last is not None:
        keep.update(ordered[-parameters.keep_last :])
    if parameters.keep_every is not None:
        keep.update(index for index in ordered if index % parameters.keep_every == 0)
    if parameters.keep_best is not None:
        best = sorted((i for i in ordered if i in scores), key=lambda i: (-scores[i], i))
        keep.update(best[: parameters.keep_best])
    return keep


class Retention:
    """Prunes an experiment's checkpoints."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._store = experiment.manifests
        self._done: set[str] = set()

    def prune(self, parameters: RetentionParameters, scores: Mapping[int, float]) -> list[str]:
        """Delete the checkpoints that no rule keeps. Returns their full names."""
        if parameters.keeps_all:
            return []
        found = (_ITERATION.fullmatch(name) for name in self._store.iterations())
        names = {int(match[1]): match[0] for match in found if match}
        updated = [i for i in names if i and self._store.current(f"{names[i]}.update_policy")]
        if not updated:
            return []
        # An iteration after the newest complete one is under way, and needs its checkpoints.
        newest = max(updated)
        needed = self._read_by(names[index] for index in names if index >= newest)
        keep = kept(updated, parameters, scores) | {newest}
        doomed = [names[index] for index in sorted(updated) if index not in keep]
        return [
            name
            for iteration in doomed
            if iteration not in self._done
            for name in self._prune_iteration(iteration, needed)
        ]

    def _read_by(self, iterations: Iterable[str]) -> set[tuple[str, str | None]]:
        return {
            (record.dataset, record.version)
            for iteration in iterations
            for path in self._store.every_path_of(iteration)
            for record in self._store.read(path).inputs
        }

    def _prune_iteration(self, iteration: str, needed: set[tuple[str, str | None]]) -> list[str]:
        names, complete = [], True
        for path in self._store.every_path_of(iteration):
            manifest = self._store.read(path)
            for record in manifest.outputs:
                if not self._is_checkpoint(manifest, record):
                    continue
                if (record.dataset, record.version) in needed or self._is_shared(path):
                    complete = False
                    continue
                self._store.mark_pruned(path, [record.dataset])
                self._delete(self._experiment.path(record))
                names.append(record.dataset)
        if complete:
            self._done.add(iteration)
        return names

    def _is_checkpoint(self, manifest: Manifest, record: OutputRecord) -> bool:
        if manifest.experiment != self._experiment.name or record.dataset in manifest.pruned:
            return False  # a fork shares what another experiment made
        return self._experiment.path(record).is_dir()

    def _is_shared(self, path: Path) -> bool:
        """Whether a fork shares what this manifest commits."""
        place = path.relative_to(self._store.root)
        others = self._experiment.others()
        return any((other.manifests.root / place).is_file() for other in others)

    def _delete(self, folder: Path) -> None:
        (folder / MARKER).unlink(missing_ok=True)  # a half-deleted folder is not a checkpoint
        shutil.rmtree(folder.parent)

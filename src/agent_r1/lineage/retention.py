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
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from agent_r1.lineage.experiment import Experiment
from agent_r1.lineage.manifest import OutputRecord
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


def prune(
    experiment: Experiment, parameters: RetentionParameters, scores: Mapping[int, float]
) -> list[str]:
    """Delete the checkpoints that no rule keeps. Returns their full names."""
    if parameters.keeps_all:
        return []
    store = experiment.manifests
    found = (_ITERATION.fullmatch(name) for name in store.iterations())
    names = {int(match[1]): match[0] for match in found if match}
    updated = [i for i in names if i and store.current(f"{names[i]}.update_policy")]
    if not updated:
        return []
    # An iteration after the newest complete one is under way, and needs its checkpoints.
    newest = max(updated)
    needed = {
        (record.dataset, record.version)
        for index in names
        if index >= newest
        for path in store.every_path(names[index])
        for record in store.read(path).inputs
    }
    keep = kept(updated, parameters, scores) | {newest}
    return [
        record.dataset
        for index in sorted(updated)
        if index not in keep
        for path in store.every_path(names[index])
        for record in store.read(path).outputs
        if (record.dataset, record.version) not in needed and _prune(experiment, path, record)
    ]


def _prune(experiment: Experiment, path: Path, record: OutputRecord) -> bool:
    """Delete what a manifest commits, if it is a checkpoint that this experiment alone has."""
    store = experiment.manifests
    manifest, folder = store.read(path), experiment.path(record)
    if manifest.experiment != experiment.name or record.dataset in manifest.pruned:
        return False  # a fork shares what another experiment made
    others = (other.manifests.root / store.name(path) for other in experiment.others())
    if not folder.is_dir() or any(shared.is_file() for shared in others):
        return False
    store.mark_pruned(path, [record.dataset])
    _delete(folder)
    return True


def _delete(folder: Path) -> None:
    (folder / MARKER).unlink(missing_ok=True)  # a half-deleted folder is not a checkpoint
    shutil.rmtree(folder.parent)

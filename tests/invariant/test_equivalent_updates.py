"""Ways of computing the same update, held against one of them through the command line.

What a user changes for speed or memory (how a mini-batch is cut, packed, or who holds the weights),
and what nobody should have to think about (the order of rows), must not change what is learned.

1. A short but real experiment gives one iteration's tables, with rewards that differ.
2. ``kedro rerun update_policy`` makes the update again, with ``update.keep_gradients``.
3. The gradient of the first optimizer step and the change of the weights after the last are
   compared with those of the reference, by relative L2 distance. Rounding has no direction, so the
   members' distances along the reference must cancel out (no one-sided drift).
4. A wrong normalisation, planted in the losses, is further off by orders of magnitude.

An error that all ways share is not seen here: `test_committed_reference` sees it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.invariant.ways import CLASSES, OBJECTIVES, WAYS
from tests.support.forked_runs import TIMEOUT, Ended
from tests.support.small_experiment import SmallExperiments, environment

pytestmark = pytest.mark.slow

GRADIENTS, CHANGES = 1e-5, 1e-3
"""Limits of the relative L2 distance."""
DRIFT = 0.3
"""Share of them that the mean along the reference may be; the references are rounded, too."""

EXPERIMENT = (
    "experiment=equivalent,iterations=1,seed=1,sft.steps=40,sft.batch_size=8,"
    "demonstrations.count=60,rollout.tasks_per_iteration=4,rollout.group_size=4,"
    "update.objective=dpo"  # which has preferences made, too
)
SHUFFLED = "silent:shuffled:iter_00001.update_policy"
AVERAGED = "silent:averaged:update"


@dataclass(frozen=True)
class Update:
    """What an update did, as flat vectors."""

    gradient: np.ndarray
    change: np.ndarray
    """Of the weights."""


class Updates:
    """Updates of the experiment's iteration 1, each made once."""

    def __init__(self, experiments: SmallExperiments) -> None:
        ended = experiments.command("run", "--params", EXPERIMENT)
        assert ended.returncode == 0, ended.output
        self._experiments = experiments
        self._made: dict[tuple[str, str, str | None], Update] = {}

    def made(self, objective: str, way: str, fault: str | None = None) -> Update:
        """The update, by ``kedro rerun``; ``fault`` must have struck."""
        key = (objective, way, fault)
        if key not in self._made:
            ended = self._experiments.command(*arguments(objective, way), fault=fault)
            assert ended.struck == fault
            self._made[key] = self.read(ended)
        return self._made[key]

    def made_alone(self, objective: str, way: str) -> tuple[Update, str]:
        """The same by ``kedro`` in a process that starts from nothing; and what it said."""
        done = subprocess.run(
            [sys.executable, "-m", "kedro", *arguments(objective, way), "--env", "faults"],
            cwd=self._experiments.project,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        return self.read(Ended(done.returncode, done.stdout, None)), done.stdout

    def read(self, ended: Ended) -> Update:
        """What a rerun made."""
        assert ended.returncode == 0, ended.output
        version = re.search(r"ran again in experiment .*: version (\S+)", ended.output)[1]
        store, node = self._experiments.store("equivalent"), "iter_00001.update_policy"
        manifest = store.read(next(p for p in store.paths(node) if p.stem == version))
        before = {record.dataset: self._experiments.project / record.path
                  for record in manifest.inputs}  # fmt: skip
        after = {record.dataset.rpartition(".")[2]: self._experiments.project / record.path
                 for record in manifest.outputs}  # fmt: skip
        old = flat(before["iter_00000.policy"] / "model.safetensors")
        new = flat(after["policy"] / "model.safetensors")
        return Update(flat(after["trainer_state"] / "gradients.safetensors"), new - old)


def arguments(objective: str, way: str) -> list[str]:
    how = "update.mini_batch_trajectories=8,update.keep_gradients=true"
    return [
        "rerun", "update_policy", "--iteration", "1", "--experiment", "equivalent",
        "--params", ",".join([how, OBJECTIVES[objective], WAYS[way]]),
    ]  # fmt: skip


def flat(file: Path) -> np.ndarray:
    tensors = load_file(file)
    return np.concatenate([tensors[name].ravel() for name in sorted(tensors)]).astype(np.float64)


def distance(found: np.ndarray, reference: np.ndarray) -> float:
    return float(np.linalg.norm(found - reference) / np.linalg.norm(reference))


def along(found: np.ndarray, reference: np.ndarray) -> float:
    """How much longer than the reference it is in its direction, relative to it."""
    return float((found - reference) @ reference / (reference @ reference))


@pytest.fixture(scope="module")
def updates(experiments: SmallExperiments) -> Updates:
    return Updates(experiments)


@pytest.mark.parametrize(
    ("objective", "way"), [(objective, way) for objective, ways in CLASSES.items() for way in ways]
)
def test_p22_the_update_is_the_same(updates: Updates, objective: str, way: str) -> None:
    reference, found = updates.made(objective, "reference"), updates.made(objective, way)
    assert distance(found.gradient, reference.gradient) <= GRADIENTS
    assert distance(found.change, reference.change) <= CHANGES


def test_p22_the_order_of_rows_changes_no_bit(updates: Updates) -> None:
    reference = updates.made("token_mean", "reference")
    found = updates.made("token_mean", "reference", SHUFFLED)
    assert np.array_equal(found.gradient, reference.gradient)
    assert np.array_equal(found.change, reference.change)


def test_p22_deepspeed_in_a_process_of_its_own_is_the_same_and_says_nothing(
    updates: Updates,
) -> None:
    reference = updates.made("token_mean", "reference")
    found, said = updates.made_alone("token_mean", "zero_1")
    assert distance(found.gradient, reference.gradient) <= GRADIENTS
    assert distance(found.change, reference.change) <= CHANGES
    assert not re.search(r"WARN|rank|gloo|compil|process group", said, re.IGNORECASE), said


def test_p22_rounding_has_no_direction(updates: Updates) -> None:
    """A scale that is a little wrong would stay within the limits, but all on one side."""
    pairs = [
        (updates.made(objective, way), updates.made(objective, "reference"))
        for objective, ways in CLASSES.items()
        for way in ways
    ]
    drifts = [along(found.gradient, reference.gradient) for found, reference in pairs]
    assert abs(np.mean(drifts)) < DRIFT * GRADIENTS
    drifts = [along(found.change, reference.change) for found, reference in pairs]
    assert abs(np.mean(drifts)) < DRIFT * CHANGES


def test_p22_a_wrong_normalisation_is_seen(updates: Updates) -> None:
    reference = updates.made("token_mean", "reference")
    whole = updates.made("token_mean", "reference", AVERAGED)
    assert distance(whole.gradient, reference.gradient) <= GRADIENTS  # one micro-batch: no fault
    cut = updates.made("token_mean", "micro_batch_2", AVERAGED)
    assert distance(cut.gradient, reference.gradient) > 1000 * GRADIENTS
    assert distance(cut.change, reference.change) > 10 * CHANGES

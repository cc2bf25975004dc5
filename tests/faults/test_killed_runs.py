"""SIGKILL at every point of every node: the experiment ends as if nothing had happened.

One experiment is killed at one point after the other. Each run finishes what the last one left, up
to its own kill; the last one is left alone. What is pinned:

1. Each kill really happened, at its point: before a node, in the middle of each of its outputs,
   before its manifest, in the middle of it, and after it.
2. The last run ends well, and every dataset has the bytes of the undisturbed experiment's.
3. What was committed never ran again: a manifest per node.
4. Every output is on the disk as its manifest says.
5. Nothing is left behind: no staged checkpoint, no uncommitted version, no temporary file.
"""

from __future__ import annotations

import signal

import pytest

from tests.support.forked_runs import Ended
from tests.support.small_experiment import NODES, SmallExperiments

pytestmark = pytest.mark.slow

_CHECKPOINTS = ("policy", "critic", "trainer_state")


def _kills() -> list[str]:
    kills = []
    for node, outputs in NODES.items():
        if node.startswith("iter_00001."):  # the second iteration has the same nodes, and more
            kills.append(f"kill:saved:{node}")
            continue
        kills.append(f"kill:before:{node}")
        kills += [f"kill:staged:{o}" for o in outputs if o.rpartition(".")[2] in _CHECKPOINTS]
        kills += [f"kill:writing:{output}" for output in outputs]
        kills += [f"kill:{phase}:{node}" for phase in ("saved", "manifest", "committed")]
    return kills


KILLS = _kills()


@pytest.fixture(scope="module")
def killed(experiments: SmallExperiments, undisturbed: Ended) -> dict[str, Ended]:
    """Kill → how its run ended; the last run, which nothing killed, is at ``""``."""
    runs = {kill: experiments.run("killed", kill) for kill in KILLS}
    return runs | {"": experiments.run("killed")}


@pytest.mark.parametrize("kill", KILLS)
def test_the_kill_happened_at_its_point(killed: dict[str, Ended], kill: str):
    ended = killed[kill]
    assert ended.struck == kill, ended.output
    assert ended.returncode == -signal.SIGKILL


def test_the_last_run_ends_well(killed: dict[str, Ended]):
    assert killed[""].returncode == 0, killed[""].output


def test_every_dataset_is_the_undisturbed_one(
    experiments: SmallExperiments, killed: dict[str, Ended]
):
    assert experiments.hashes("killed") == experiments.hashes("undisturbed")


def test_the_undisturbed_experiment_learned_something(
    experiments: SmallExperiments, undisturbed: Ended
):
    hashes = experiments.hashes("undisturbed")
    policies = [hashes[f"{name}.policy"] for name in ("base", *(f"iter_0000{i}" for i in range(3)))]
    assert len(set(policies)) == len(policies)


def test_what_was_committed_never_ran_again(
    experiments: SmallExperiments, killed: dict[str, Ended]
):
    store = experiments.store("killed")
    assert {node: len(store.paths(node)) for node in NODES} == dict.fromkeys(NODES, 1)
    assert {manifest.node for _, manifest in store.all()} == set(NODES)


def test_every_output_is_what_its_manifest_says(
    experiments: SmallExperiments, killed: dict[str, Ended]
):
    assert experiments.wrongly_committed("killed") == []


def test_no_staged_checkpoint_is_left(experiments: SmallExperiments, killed: dict[str, Ended]):
    assert experiments.staged() == []


def test_no_uncommitted_version_is_left(experiments: SmallExperiments, killed: dict[str, Ended]):
    assert experiments.uncommitted("killed") == []


def test_no_temporary_file_is_left(experiments: SmallExperiments, killed: dict[str, Ended]):
    assert experiments.half_written("killed") == []

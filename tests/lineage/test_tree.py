"""What made a dataset, followed to the raw data."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_r1.lineage import LineageError, ManifestStore
from agent_r1.lineage.tree import Origin, find, trace
from tests.support.toy_experiment import finish_experiment


@pytest.fixture
def store(project) -> ManifestStore:
    finish_experiment(project.path, 2)
    return ManifestStore(project.path / "data/08_reporting/x/manifests")


def walk(origin: Origin) -> Iterator[Origin]:
    """The members of the tree, each before what made it."""
    yield origin
    for source in origin.inputs:
        yield from walk(source)


def test_it_ends_at_the_raw_data(store):
    members = list(walk(trace(store, "iter_00002.policy")))
    raw = {member.dataset for member in members if member.made_by is None}
    assert raw == {"countries", "cities", "elements", "memory"}
    made = {member.made_by.node for member in members if member.made_by}
    assert {"prepare_tasks", "base.import_policy", "iter_00000.train_sft",
            "iter_00001.update_policy", "iter_00002.generate_rollouts"} <= made  # fmt: skip
    assert "iter_00002.validate_policy" not in made  # it made nothing of this


def test_each_node_run_is_followed_once(store):
    members = list(walk(trace(store, "iter_00002.policy")))
    followed = [
        (member.made_by.node, member.made_by.version) for member in members if member.inputs
    ]
    assert len(followed) == len(set(followed))
    again = [member for member in members if member.seen]
    assert again
    assert all(not member.inputs for member in again)


def test_the_depth_bounds_the_node_runs(store):
    root = trace(store, "iter_00002.advantages", depth=1)
    assert {source.dataset for source in root.inputs} == {
        "iter_00002.rollouts", "iter_00002.rewards", "iter_00002.logprobs",
        "iter_00001.controllers",
    }  # fmt: skip
    assert not any(source.inputs for source in root.inputs)
    assert trace(store, "iter_00002.advantages", depth=0).inputs == ()


def test_what_is_not_committed_is_named_with_what_is(store):
    with pytest.raises(LineageError, match=r"Committed there: .*iter_00002\.rewards"):
        trace(store, "iter_00002.reward")
    with pytest.raises(LineageError, match=r"version v1 of 'iter_00002\.rewards' is not committed"):
        trace(store, "iter_00002.rewards", "v1")
    with pytest.raises(LineageError, match="Committed are base … iter_00002"):
        trace(store, "iter_00009.rewards")


def test_a_hash_leads_to_the_dataset(store):
    policy = store.committed("iter_00001.policy")
    assert find(store, policy.record.sha256[:12]) == [("iter_00001.policy", policy.version)]
    assert find(store, "0" * 12) == []


def test_a_broken_chain_is_said_and_not_shown(store):
    path = store.current("iter_00001.score_rewards")
    path.write_bytes(store.current("iter_00002.score_rewards").read_bytes())
    with pytest.raises(LineageError, match="run kedro verify"):
        trace(store, "iter_00001.policy")

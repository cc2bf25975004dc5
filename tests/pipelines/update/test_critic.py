"""The critic through the nodes: log-probs with values, GAE, update; iteration after iteration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from agent_r1 import tables
from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.schemas import SchemaError
from agent_r1.storage.hashing import folder_sha256
from agent_r1.training.optimizer import is_empty, write_empty
from tests.support.nodes import compute_logprobs, update_policy
from tests.support.step_tables import rewards, rollouts, step
from tests.support.tiny_models import VOCABULARY, write_policy

RANDOM = np.random.default_rng(0)
TABLE = rollouts(
    *(
        step(
            f"{task}/{sample}", 0, [1, 2 + sample], RANDOM.integers(0, VOCABULARY, 5).tolist(),
            truncated=sample == 3, terminated=sample != 3,
            final_token_ids=[6, 7] if sample == 3 else None,
        )
        for task in "pq"
        for sample in range(4)
    )
)  # fmt: skip
REWARDS = rewards(TABLE, p__0=1, p__1=0, p__2=0, p__3=1, q__0=0.5, q__1=None, q__2=0.0, q__3=0.0)
BOTH = pytest.mark.parametrize("kind", ["own", "shared"])


class Outputs(NamedTuple):
    policy: Path
    critic: Path
    state: Path
    controllers: dict[str, Any]
    metrics: pd.DataFrame

    @property
    def hashes(self) -> list[str]:
        return [folder_sha256(folder) for folder in (self.policy, self.critic, self.state)]

    def metric(self, name: str) -> list[float]:
        return self.metrics.loc[self.metrics["metric"] == name, "value"].tolist()


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outputs:
    monkeypatch.chdir(tmp_path)
    for name in ("policy", "critic", "state"):
        (tmp_path / name).mkdir()
    policy = write_policy(tmp_path / "policy")
    critic, state = (write_empty(tmp_path / name, "none yet") for name in ("critic", "state"))
    return Outputs(policy, critic, state, {}, tables.empty("metrics"))


def iterate(
    before: Outputs,
    kind: str,
    number: int = 1,
    table: pd.DataFrame = TABLE,
    level: str = "token",
    values: bool = True,
    update: dict[str, Any] | None = None,
    **critic: Any,
) -> Outputs:
    """One iteration with GAE; all of it comes from what the one before it wrote."""
    logprobs = compute_logprobs(
        table, before.policy, before.policy, before.critic, {"values": values}, {}
    )
    advantage = {"estimator": "gae" if values else "grpo", "level": level}
    parameters = {"aggregation": "token_mean", "warmup_steps": 0, "eps": 1e-8}
    parameters |= {"learning_rate": 0.01, "mini_batch_trajectories": 4}
    parameters |= {"critic": {"backbone": kind, "learning_rate": 0.01} | critic} | (update or {})
    outputs = update_policy(
        before.policy,
        before.policy,
        before.critic,
        before.state,
        before.controllers,
        table,
        logprobs,
        compute_advantages(table, REWARDS, logprobs, advantage),
        tables.empty("preferences"),
        parameters,
        {},
        0,
        iteration=f"iter_{number:05d}",
    )
    return Outputs(*outputs)


def test_values_are_zero_before_the_first_update_and_null_unless_asked_for(start: Outputs) -> None:
    folders = (start.policy, start.policy, start.critic)
    table = compute_logprobs(TABLE, *folders, {"values": True}, {})
    assert table.equals(tables.conform(table, "logprobs"))
    assert table["values"].tolist() == [[0.0] * 5] * 8
    bootstrap = table["bootstrap_value"]
    assert bootstrap.isna().tolist() == [True, True, True, False] * 2
    assert bootstrap.dropna().tolist() == [0.0, 0.0]
    off = compute_logprobs(TABLE, *folders, {}, {})
    assert off["values"].isna().all()
    assert off["bootstrap_value"].isna().all()


@BOTH
def test_an_iteration_trains_the_critic_that_the_next_one_reads(start: Outputs, kind: str) -> None:
    first = iterate(start, kind)
    assert all(a != b for a, b in zip(first.hashes, start.hashes, strict=True))
    said = compute_logprobs(TABLE, first.policy, first.policy, first.critic, {"values": True}, {})
    assert all(value != 0 for values in said["values"] for value in values)
    assert (said["bootstrap_value"].dropna() != 0).all()
    assert first.metric("explained_variance") == [0]
    assert iterate(first, kind, 2).metric("explained_variance")[0] != 0


@BOTH
@pytest.mark.parametrize("level", ["token", "step"])
def test_p37_resumed_from_the_folders_the_critic_ends_with_the_same_bytes(
    start: Outputs, kind: str, level: str
) -> None:
    """Each iteration starts from folders alone, so two runs of it are one interrupted run."""

    def three() -> list[list[str]]:
        outputs, found = start, []
        for number in (1, 2, 3):
            outputs = iterate(outputs, kind, number, level=level)
            found.append(outputs.hashes)
        return found

    hashes = three()
    assert three() == hashes
    assert len({critic for _, critic, _ in hashes}) == 3


@BOTH
def test_row_order_changes_nothing(start: Outputs, kind: str) -> None:
    shuffled = TABLE.sample(frac=1, random_state=3).reset_index(drop=True)
    assert iterate(start, kind, table=shuffled).hashes == iterate(start, kind).hashes


@BOTH
def test_the_warm_up_copies_the_policy_byte_for_byte(start: Outputs, kind: str) -> None:
    outputs, found = start, []
    for number in (1, 2, 3):
        outputs = iterate(outputs, kind, number, warmup_iterations=2)
        found.append(outputs)
    for warming_up, before in zip(found[:2], [start, *found], strict=False):
        assert warming_up.hashes[0] == start.hashes[0]
        assert warming_up.hashes[2] == start.hashes[2]
        assert warming_up.hashes[1] != before.hashes[1]
    assert found[2].hashes[0] != start.hashes[0]
    assert [outputs.metric("critic_warmup") for outputs in found] == [[1], [1], [0]]


def test_without_a_critic_its_checkpoint_is_handed_on(start: Outputs) -> None:
    assert is_empty(iterate(start, "none").critic)
    trained = iterate(start, "own")
    after = iterate(trained, "none", 2)
    assert after.hashes[1] == trained.hashes[1]
    assert after.metric("value_loss") == []


@BOTH
def test_without_values_nothing_is_staged(start: Outputs, kind: str) -> None:
    with pytest.raises(SchemaError, match=r"table 'logprobs' has no values of trajectory 'p/0'"):
        iterate(start, kind, values=False)
    assert not Path("data/.staging").exists()


def test_an_estimator_without_returns_is_named(start: Outputs) -> None:
    logprobs = compute_logprobs(
        TABLE, start.policy, start.policy, start.critic, {"values": True}, {}
    )
    with pytest.raises(SchemaError, match=r"table 'advantages' has no returns of trajectory 'p/0'"):
        update_policy(
            start.policy,
            start.policy,
            start.critic,
            start.state,
            {},
            TABLE,
            logprobs,
            compute_advantages(TABLE, REWARDS, logprobs, {"estimator": "grpo"}),
            tables.empty("preferences"),
            {"critic": {"backbone": "own"}},
            {},
            0,
            iteration="iter_00001",
        )


@BOTH
def test_a_critic_learns_the_same_beside_deepspeed_and_in_packed_rows(
    start: Outputs, kind: str
) -> None:
    plain = weights(iterate(iterate(start, kind), kind, 2).critic)
    for update in ({"strategy": "deepspeed"}, {"packing": True, "micro_batch_trajectories": 3}):
        other = iterate(iterate(start, kind, update=update), kind, 2, update=update)
        for name, weight in weights(other.critic).items():
            assert torch.allclose(weight, plain[name], rtol=1e-3, atol=1e-5)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    names = ("value_head.safetensors", "model.safetensors")
    files = [folder / name for name in names if (folder / name).exists()]
    return {name: weight for file in files for name, weight in load_file(file).items()}

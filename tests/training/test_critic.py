"""The critic on disk: complete, deterministic, without pickles; a wrong one is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import PreTrainedModel

from agent_r1.storage.hashing import folder_sha256
from agent_r1.training.critic import (
    CriticError,
    CriticParameters,
    CriticState,
    load_critic,
    restore_critic,
    save_critic,
)
from agent_r1.training.optimizer import (
    OptimizerParameters,
    TrainerStateError,
    ensure_gradients,
    optimizer_step,
    write_empty,
)
from agent_r1.training.policy import ModelFolderError
from tests.support.tiny_models import flat_weights, random_model

ADAMW = OptimizerParameters(learning_rate=0.01)
KINDS = ("own", "shared")


def restore(folder: Path, kind: str, policy: PreTrainedModel | None = None) -> CriticState:
    parameters = CriticParameters(backbone=kind)
    return restore_critic(folder, policy or random_model(), parameters, ADAMW, torch.float32)


def learn(state: CriticState, steps: int) -> CriticState:
    """Train V of random states towards 1."""
    for _ in range(steps):
        torch.manual_seed(state.steps)
        if state.critic.backbone is None:
            hidden = torch.randn(5, 32)
        else:
            tokens = torch.randint(0, 48, (1, 5))
            hidden = state.critic.backbone(input_ids=tokens).last_hidden_state[0]
        (state.critic(hidden) - 1).square().sum().backward()
        ensure_gradients(state.critic)
        optimizer_step(state.critic, state.optimizer, 0.01, 1.0)
        state.steps += 1
    return state


def new(folder: Path, kind: str) -> CriticState:
    folder.mkdir()
    return restore(write_empty(folder, "no critic"), kind)


def saved(folder: Path, kind: str, steps: int = 2) -> Path:
    state = learn(new(folder.with_name(f"{folder.name}-before"), kind), steps)
    state.updates = 1
    folder.mkdir()
    return save_critic(state, folder)


def test_a_new_critic_is_a_copy_of_the_policys_decoder_with_a_head_of_zeros(
    tmp_path: Path,
) -> None:
    policy = random_model()
    folder = write_empty(tmp_path, "no critic")
    assert load_critic(folder, policy, torch.float32) is None
    state = restore(folder, "own", policy)
    assert torch.equal(flat_weights(state.critic.backbone), flat_weights(policy.base_model))
    assert flat_weights(state.critic.head).abs().sum() == 0
    learn(state, 2)
    assert torch.equal(flat_weights(policy), flat_weights(random_model()))
    assert not torch.equal(flat_weights(state.critic.backbone), flat_weights(policy.base_model))


@pytest.mark.parametrize("kind", KINDS)
def test_p37_a_restored_critic_continues_bit_for_bit(tmp_path: Path, kind: str) -> None:
    straight = learn(new(tmp_path / "empty", kind), 5)
    state = restore(saved(tmp_path / "saved", kind, steps=2), kind)
    assert (state.steps, state.updates) == (2, 1)
    assert torch.equal(flat_weights(learn(state, 3).critic), flat_weights(straight.critic))


@pytest.mark.parametrize("kind", KINDS)
def test_equal_critics_give_equal_bytes_without_a_pickle(tmp_path: Path, kind: str) -> None:
    folders = [saved(tmp_path / name, kind) for name in "ab"]
    assert folder_sha256(folders[0]) == folder_sha256(folders[1])
    names = {file.name for file in folders[0].iterdir()}
    head = {"critic.json", "value_head.safetensors", "optimizer.safetensors", "trainer_state.json"}
    assert names == head | ({"model.safetensors", "config.json"} if kind == "own" else set())


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickle_in_the_folder_is_refused(tmp_path: Path, kind: str) -> None:
    folder = saved(tmp_path / "saved", kind)
    (folder / "pytorch_model.bin").touch()
    with pytest.raises(ModelFolderError, match=r"pickled files \(pytorch_model.bin\)"):
        load_critic(folder, random_model(), torch.float32)


def test_a_folder_that_is_not_a_critic_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CriticError, match=r"neither critic.json nor empty.json"):
        load_critic(tmp_path, random_model(), torch.float32)


@pytest.mark.parametrize(("kind", "other"), [KINDS, KINDS[::-1]])
def test_a_critic_of_the_other_kind_is_refused(tmp_path: Path, kind: str, other: str) -> None:
    with pytest.raises(CriticError, match=f"backbone: {kind}, but now it is {other}"):
        restore(saved(tmp_path / "saved", kind), other)


def test_a_critic_of_another_policy_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "saved", "shared")
    torch.manual_seed(0)
    config = random_model().config
    config.hidden_size = 16
    with pytest.raises(CriticError, match="does not fit the policy"):
        load_critic(folder, type(random_model())(config), torch.float32)


def test_a_critic_whose_optimizer_is_incomplete_is_refused(tmp_path: Path) -> None:
    own, shared = (saved(tmp_path / kind, kind) for kind in KINDS)
    (shared / "optimizer.safetensors").replace(own / "optimizer.safetensors")
    with pytest.raises(TrainerStateError, match="no moments of parameter 'backbone"):
        restore(own, "own")


def test_a_critic_of_a_bfloat16_policy_gives_float32(tmp_path: Path) -> None:
    policy = random_model(dtype=torch.bfloat16)
    state = restore_critic(
        write_empty(tmp_path, ""), policy, CriticParameters(backbone="own"), ADAMW, torch.bfloat16
    )
    assert state.critic.backbone.dtype == torch.bfloat16
    assert state.critic(torch.ones(2, 32, dtype=torch.bfloat16)).dtype == torch.float32


def test_its_folder_names_its_kind(tmp_path: Path) -> None:
    about = json.loads((saved(tmp_path / "saved", "own") / "critic.json").read_text())
    assert about == {"backbone": "own", "updates": 1}

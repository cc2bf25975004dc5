"""The trainer state: restored bit for bit; the state of another model is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from agent_r1.parameters import ParameterError
from agent_r1.storage.hashing import folder_sha256
from agent_r1.training.optimizer import (
    OptimizerParameters,
    TrainerStateError,
    is_empty,
    make_optimizer,
    optimizer_step,
    restore_state,
    save_state,
    warmed_up,
    write_empty,
)
from tests.support.tiny_models import flat_weights, random_model, tiny_model

PARAMETERS = OptimizerParameters(learning_rate=0.01, weight_decay=0.1)


def test_an_invalid_decay_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"'update.betas.1'.*less than 1"):
        OptimizerParameters.read({"betas": [0.9, 1.0]}, "update")


def descend(model, optimizer, steps: range) -> None:
    for step in steps:
        tokens = torch.tensor([[step + 1, 5, 7, step + 2]])
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer_step(model, optimizer, 0.01, 1.0)


def test_p37_a_restored_optimizer_continues_bit_for_bit(tmp_path: Path) -> None:
    straight = random_model()
    descend(straight, make_optimizer(straight, PARAMETERS), range(6))

    model = random_model()
    optimizer = make_optimizer(model, PARAMETERS)
    descend(model, optimizer, range(3))
    saved = save_state(model, optimizer, 3, tmp_path)
    fresh = make_optimizer(model, PARAMETERS)
    assert restore_state(model, fresh, saved) == 3
    descend(model, fresh, range(3, 6))
    assert torch.equal(flat_weights(model), flat_weights(straight))


def test_equal_states_give_equal_bytes_without_a_pickle(tmp_path: Path) -> None:
    folders = []
    for name in ("a", "b"):
        model = random_model()
        optimizer = make_optimizer(model, PARAMETERS)
        descend(model, optimizer, range(2))
        (tmp_path / name).mkdir()
        folders.append(save_state(model, optimizer, 2, tmp_path / name))
    assert folder_sha256(folders[0]) == folder_sha256(folders[1])
    assert {file.suffix for file in folders[0].iterdir()} == {".safetensors", ".json"}


def test_the_empty_state_is_the_one_before_the_first_step(tmp_path: Path) -> None:
    model = random_model()
    optimizer = make_optimizer(model, PARAMETERS)
    folder = write_empty(tmp_path, "nothing yet")
    assert is_empty(folder)
    assert restore_state(model, optimizer, folder) == 0
    assert not optimizer.state


def test_a_folder_that_is_not_a_state_is_refused(tmp_path: Path) -> None:
    model = random_model()
    with pytest.raises(TrainerStateError, match=r"neither trainer_state.json nor empty.json"):
        restore_state(model, make_optimizer(model, PARAMETERS), tmp_path)


def test_the_state_of_another_model_is_refused(tmp_path: Path) -> None:
    model = random_model()
    optimizer = make_optimizer(model, PARAMETERS)
    descend(model, optimizer, range(1))
    save_state(model, optimizer, 1, tmp_path)
    for changes, message in (
        ({"hidden_size": 16}, "has shape"),
        ({"num_hidden_layers": 3}, "no mo"),
    ):
        other = tiny_model(tie_word_embeddings=True, head_dim=8, **changes)
        with pytest.raises(TrainerStateError, match=message):
            restore_state(other, make_optimizer(other, PARAMETERS), tmp_path)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_changes_no_weight(value: float) -> None:
    model = random_model()
    before = flat_weights(model).clone()
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, value)
    with pytest.raises(FloatingPointError, match="gradient norm"):
        optimizer_step(model, make_optimizer(model, PARAMETERS), 0.01, 1.0)
    assert torch.equal(flat_weights(model), before)


def test_the_gradient_is_clipped_and_its_norm_before_is_reported() -> None:
    model = random_model()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    count = len(flat_weights(model))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = flat_weights(model).clone()
    norm = optimizer_step(model, optimizer, 1.0, 0.5)
    assert norm == pytest.approx(math.sqrt(count), rel=1e-4)
    assert (flat_weights(model) - before).norm().item() == pytest.approx(0.5, rel=1e-3)


def test_warm_up_rises_to_the_learning_rate() -> None:
    parameters = OptimizerParameters(learning_rate=1.0, warmup_steps=3)
    assert [warmed_up(parameters, step) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]


@pytest.mark.parametrize(
    ("gradient", "eps", "share"),
    [(1e-7, 1e-8, 10 / 11), (1e-7, 1e-5, 1 / 101), (1e-2, 1e-5, 1000 / 1001)],
)
def test_eps_keeps_weights_with_tiny_gradients_in_place(gradient, eps, share) -> None:
    """The first step of Adam is the learning rate times g / (|g| + eps)."""
    weight = torch.nn.Linear(1, 1, bias=False).double()
    torch.nn.init.zeros_(weight.weight)
    optimizer = make_optimizer(weight, OptimizerParameters(learning_rate=0.5, eps=eps))
    weight.weight.grad = torch.full_like(weight.weight, gradient)
    optimizer_step(weight, optimizer, 0.5, 1.0)
    assert weight.weight.item() == pytest.approx(-0.5 * share, rel=1e-9)

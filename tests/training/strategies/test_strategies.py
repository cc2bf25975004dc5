"""All strategies make the same update, and write and read the same trainer state.

The gradient is a sum over blocks, clipped by its own norm. A saved state continues bit for bit with
the same strategy, and up to rounding with the other one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import distributed

from agent_r1.losses.registry import OBJECTIVES
from agent_r1.parameters import ParameterError
from agent_r1.storage.hashing import folder_sha256
from agent_r1.training.optimizer import TrainerStateError
from agent_r1.training.strategies import TrainerStrategy, make_strategy
from agent_r1.training.update import UpdateParameters, train
from tests.support.tiny_models import flat_weights, random_model, write_policy
from tests.support.update_batches import MOVED, PLAIN, SAMPLED, batch, distance

TORCH: dict = {"strategy": "torch"}
ZERO_1 = {"strategy": "deepspeed", "deepspeed": {"zero_stage": 1}}
ZERO_2 = {"strategy": "deepspeed", "deepspeed": {"zero_stage": 2}}
ALL = pytest.mark.parametrize("which", [TORCH, ZERO_1, ZERO_2], ids=["torch", "zero_1", "zero_2"])
ZERO = pytest.mark.parametrize("which", [ZERO_1, ZERO_2], ids=["zero_1", "zero_2"])
MORE = PLAIN | {"learning_rate": 0.01, "weight_decay": 0.1, "mini_batch_trajectories": 3}


def strategy(which: dict, model=None, state: Path | None = None, **more) -> TrainerStrategy:
    model = model or random_model()
    parameters = UpdateParameters(**MORE | which | more)
    return make_strategy(model, parameters.trainer, parameters.optimizer, state)


def flat(gradients: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([gradient.flatten() for gradient in gradients.values()])


def squares(model: torch.nn.Module, factor: float) -> torch.Tensor:
    """A loss whose gradient is known: factor * weight."""
    return factor * sum((parameter**2).sum() for parameter in model.parameters()) / 2


@ALL
def test_losses_are_summed_and_the_norm_is_from_before_clipping(which: dict) -> None:
    weights = flat_weights(random_model())
    with strategy(which) as trainer:
        trainer.accumulate([0.5, 1.0, 1.5], squares)
        assert distance(flat(trainer.gradients()), 3 * weights) < 1e-6
        assert trainer.step(0.01) == pytest.approx(3 * weights.norm().item(), rel=1e-5)
        trainer.accumulate([], squares)
        assert flat(trainer.gradients()).abs().max() == 0
        assert trainer.step(0.01) == 0
        assert trainer.steps == 2


@ALL
def test_discarded_gradients_are_not_in_the_next_step(which: dict) -> None:
    with strategy(which) as trainer:
        trainer.accumulate([5.0, 7.0], squares)
        trainer.discard()
        assert torch.equal(flat_weights(trainer.model), flat_weights(random_model()))
        trainer.accumulate([1.0], squares)
        assert distance(flat(trainer.gradients()), flat_weights(random_model())) < 1e-6


@ALL
def test_a_gradient_that_is_not_finite_changes_no_weight(which: dict) -> None:
    with strategy(which) as trainer:
        trainer.accumulate([1.0, float("nan")], squares)
        with pytest.raises(FloatingPointError, match="would destroy the policy"):
            trainer.step(0.01)
        assert torch.equal(flat_weights(trainer.model), flat_weights(random_model()))
        assert trainer.steps == 0


@ZERO
@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_p22_deepspeed_gives_the_gradient_and_the_weights_of_torch(
    which: dict, objective: str
) -> None:
    of = batch(policy_logprobs=MOVED, sampler_logprobs=SAMPLED)
    found = {}
    for name, chosen in (("torch", TORCH), ("deepspeed", which)):
        parameters = UpdateParameters(**MORE | chosen, objective=objective, entropy_coef=0.01)
        parameters = parameters.model_copy(update={"micro_batch_trajectories": 2})
        seen: list[dict[str, torch.Tensor]] = []
        with make_strategy(random_model(), parameters.trainer, parameters.optimizer) as trainer:
            _, metrics = train(trainer, of, parameters, 0, on_gradients=seen.append)
            change = flat_weights(trainer.model) - flat_weights(random_model())
        assert len(seen) == 1
        found[name] = (flat(seen[0]), change, metrics["value"].to_numpy())
    assert distance(found["deepspeed"][0], found["torch"][0]) < 1e-5
    assert distance(found["deepspeed"][1], found["torch"][1]) < 1e-3
    assert found["deepspeed"][2] == pytest.approx(found["torch"][2], rel=1e-3, abs=1e-4)


@ALL
def test_p37_a_saved_state_continues_bit_for_bit(which: dict, tmp_path: Path) -> None:
    parameters = UpdateParameters(**MORE | which)
    tokenizer, policy, state = write_policy(tmp_path), tmp_path / "policy", tmp_path / "state"
    state.mkdir()
    with strategy(which) as straight:
        for iteration in range(2):
            train(straight, batch(), parameters, iteration)
        with strategy(which) as first:
            train(first, batch(), parameters, 0)
            first.save(tokenizer, policy, state)
        with strategy(which, type(first.model).from_pretrained(policy), state) as second:
            assert second.steps == first.steps == 3
            train(second, batch(), parameters, 1)
        assert torch.equal(flat_weights(second.model), flat_weights(straight.model))


@ZERO
def test_the_strategy_may_change_between_updates(which: dict, tmp_path: Path) -> None:
    tokenizer, ends = write_policy(tmp_path / "tokenizer"), {}
    for name, (earlier, later) in {
        "torch": (TORCH, TORCH), "to": (TORCH, which), "back": (which, TORCH)
    }.items():  # fmt: skip
        policy, state = tmp_path / name / "policy", tmp_path / name / "state"
        state.mkdir(parents=True)
        with strategy(earlier) as first:
            train(first, batch(), UpdateParameters(**MORE | earlier), 0)
            first.save(tokenizer, policy, state)
        assert {file.name for file in state.iterdir()} == {
            "optimizer.safetensors", "trainer_state.json",
        }  # fmt: skip
        with strategy(later, type(first.model).from_pretrained(policy), state) as second:
            train(second, batch(), UpdateParameters(**MORE | later), 1)
        ends[name] = flat_weights(second.model) - flat_weights(random_model())
    assert distance(ends["to"], ends["torch"]) < 1e-3
    assert distance(ends["back"], ends["torch"]) < 1e-3


@ZERO
def test_saving_without_a_step_gives_the_same_bytes(which: dict, tmp_path: Path) -> None:
    tokenizer, hashes = write_policy(tmp_path / "tokenizer"), []
    for name, chosen in (("torch", TORCH), ("zero", which)):
        (tmp_path / f"{name}_state").mkdir()
        with strategy(chosen) as trainer:
            trainer.accumulate([1.0], squares)
            trainer.step(1e-12)
            trainer.save(tokenizer, tmp_path / name, tmp_path / f"{name}_state")
        hashes.append(folder_sha256(tmp_path / name))
        assert load_file(tmp_path / name / "model.safetensors")
    assert hashes[0] == hashes[1]


def test_deepspeed_does_not_change_the_process() -> None:
    environment, threads = dict(os.environ), torch.get_num_threads()
    with strategy(ZERO_1) as trainer:
        trainer.accumulate([1.0], squares)
        assert not trainer.model.training  # no dropout
    assert dict(os.environ) == environment
    assert torch.get_num_threads() == threads
    group = distributed.group.WORLD
    assert group.size() == 1
    with strategy(ZERO_1):
        assert distributed.group.WORLD is group


def test_deepspeed_compiles_nothing() -> None:
    from deepspeed.comm import comm

    with strategy(ZERO_1):
        assert comm.cdb.shm_comm_op is None


def test_an_import_error_of_deepspeed_names_a_remedy(monkeypatch) -> None:
    def fails(name: str) -> None:
        raise RuntimeError("CUDA_HOME does not exist")

    monkeypatch.setattr("agent_r1.training.strategies.deepspeed.import_module", fails)
    with pytest.raises(ParameterError, match=r"CUDA_HOME .* or set update\.strategy to torch"):
        strategy(ZERO_1)


def test_one_of_several_ranks_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 2)
    with pytest.raises(ParameterError, match=r"one of 2 ranks, but update\.strategy deepspeed"):
        strategy(ZERO_1)


def test_weights_that_are_not_float32_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"set model\.dtype to float32"):
        strategy(ZERO_1, random_model(dtype=torch.bfloat16))


@pytest.mark.parametrize("stage", [0, 3])
def test_unsupported_stages_are_refused(stage: int) -> None:
    with pytest.raises(ParameterError, match=r"'?update\.deepspeed\.zero_stage'?.* 1 and 2 are"):
        UpdateParameters.read({"deepspeed": {"zero_stage": stage}}, "update")


@ALL
def test_the_state_of_another_model_is_refused(which: dict, tmp_path: Path) -> None:
    with strategy(TORCH) as trainer:
        trainer.accumulate([1.0], squares)
        trainer.step(0.01)
        (tmp_path / "state").mkdir()
        trainer.save(write_policy(tmp_path / "p"), tmp_path / "policy", tmp_path / "state")
    other = random_model()
    other.resize_token_embeddings(50)
    with pytest.raises(TrainerStateError, match="has shape"):
        strategy(which, other, tmp_path / "state")

"""Micro-batches, padded or packed: no sequence sees another one or the padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from agent_r1.losses.registry import OBJECTIVES
from agent_r1.parameters import ParameterError
from agent_r1.training.batching import MicroBatch, check_packing, collate
from agent_r1.training.logprobs import head_of, score
from agent_r1.training.sequences import build_sequences
from tests.support.tiny_models import random_model, tiny_model
from tests.support.update_batches import MOVED, SAMPLED, TABLE, batch, distance, gradient, run

SEQUENCES = build_sequences(TABLE)
EVERYTHING = np.arange(len(SEQUENCES.trajectory))


def logprobs(model: torch.nn.Module, block: MicroBatch) -> torch.Tensor:
    ones = torch.ones(len(block.targets_N))
    return score(model, head_of(model), block, ones).logprobs_N.detach()


def test_a_packed_row_holds_the_sequences_one_after_another() -> None:
    packed, padded = collate(SEQUENCES, EVERYTHING, packed=True), collate(SEQUENCES, EVERYTHING)
    lengths = SEQUENCES.tokens.lengths - 1
    assert packed.tokens_B_L.shape == (1, lengths.sum()) == packed.positions_B_L.shape
    assert padded.tokens_B_L.shape == (len(lengths), lengths.max())
    assert padded.positions_B_L is None
    rows = zip(padded.tokens_B_L, lengths, strict=True)
    assert torch.equal(packed.tokens_B_L[0], torch.cat([row[:length] for row, length in rows]))
    expected = torch.cat([torch.arange(length) for length in lengths])
    assert torch.equal(packed.positions_B_L[0], expected)
    assert torch.equal(packed.targets_N, padded.targets_N)
    assert torch.equal(packed.actions_N, padded.actions_N)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_p07_log_probs_equal_those_of_each_sequence_alone(attention: str) -> None:
    model = random_model()
    model.set_attn_implementation(attention)
    alone = torch.cat([logprobs(model, collate(SEQUENCES, EVERYTHING[[i]])) for i in EVERYTHING])
    for packed in (False, True):
        found = logprobs(model, collate(SEQUENCES, EVERYTHING, packed=packed))
        assert (found - alone).abs().max() < 1e-5


def test_p22_another_sequence_in_the_row_cannot_influence_a_log_prob() -> None:
    """Nor its gradient: everything except one sequence is perturbed."""
    model, block = random_model(), collate(SEQUENCES, EVERYTHING, packed=True)
    before = logprobs(model, block)
    ends = np.cumsum(SEQUENCES.tokens.lengths - 1)
    for begin, end in zip(ends - (SEQUENCES.tokens.lengths - 1), ends, strict=True):
        mine = torch.zeros_like(block.tokens_B_L, dtype=torch.bool)
        mine[0, begin:end] = True
        tokens = torch.where(mine, block.tokens_B_L, (block.tokens_B_L + 7) % 48)
        perturbed = logprobs(model, replace(block, tokens_B_L=tokens))
        scored = mine[0, block.predictors_N]
        assert (perturbed - before)[scored].abs().max() < 1e-5
        assert (perturbed - before)[~scored].abs().max() > 0.1


@pytest.mark.parametrize("size", [1, 4, 100])
@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_p22_packing_does_not_change_the_gradient(objective: str, size: int) -> None:
    of = batch(policy_logprobs=MOVED, sampler_logprobs=SAMPLED)
    how = {"objective": objective, "kl_coef": 0.1, "entropy_coef": 0.01}
    padded = gradient(of, micro_batch_trajectories=100, **how)
    found = gradient(of, micro_batch_trajectories=size, packing=True, **how)
    assert distance(found, padded) < 1e-5


def test_packed_and_padded_updates_give_the_same_policy() -> None:
    how = {"mini_batch_trajectories": 4, "learning_rate": 0.01}
    padded, _ = run(batch(), **how)
    packed, _ = run(batch(), packing=True, **how)
    assert distance(packed, padded) < 1e-5


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("architecture", ["qwen2", "gpt2"])
def test_models_that_can_be_packed(architecture: str, attention: str) -> None:
    model = tiny_model(architecture, attn_implementation=attention)
    assert model.config._attn_implementation == attention
    check_packing(model, "update.packing")


def test_a_model_whose_sequences_would_see_each_other_is_refused() -> None:
    model = tiny_model("mamba")
    with pytest.raises(
        ParameterError, match=r"in MambaForCausalLM .*: set update\.packing to false"
    ):
        check_packing(model, "update.packing")

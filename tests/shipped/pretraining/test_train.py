"""The pretraining run: its objective, that it learns, and that it depends only on the seed."""

import math

import pytest
import torch

from agent_r1.shipped.pretraining.formats import Piece
from agent_r1.shipped.pretraining.train import (
    PretrainParameters,
    _learning_rate,
    encode_pieces,
    learned_loss,
    pretrain,
)

BEGINNINGS = ("Bel", "Cor", "Dun", "Fal", "Gor")
NAMES = [begin + end for begin in BEGINNINGS for end in ("ano", "eth", "ira", "um")]
TINY = PretrainParameters(
    threads=1, vocabulary=340, tokenizer_examples=60, hidden_size=32, layers=1, heads=2,
    key_value_heads=1, intermediate_size=48, steps=40, batch_size=8, warmup_steps=5, short_page=2,
    long_page=2, max_tokens=200,
)  # fmt: skip


@pytest.fixture(scope="module")
def first():
    reports = []
    model, tokenizer = pretrain(NAMES, TINY, reports.append)
    return model, tokenizer, reports


def test_equal_seeds_give_equal_weights_and_other_seeds_others(first):
    again, _ = pretrain(NAMES, TINY)
    other, _ = pretrain(NAMES, TINY.model_copy(update={"seed": 1}))
    for ours, theirs in zip(first[0].parameters(), again.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert not torch.equal(first[0].lm_head.weight, other.lm_head.weight)


def test_the_loss_falls_below_that_of_a_uniform_guess(first):
    _, tokenizer, reports = first
    assert [report["step"] for report in reports] == [20, 40]
    assert reports[-1]["loss"] < reports[0]["loss"] < math.log(len(tokenizer))


@pytest.mark.slow
def test_pages_grow_only_when_they_are_read_correctly():
    """A round has 4 batches. An easy ``grow_at`` gives 3, 4, 5 facts, then the next stage at 2."""
    easy, hard = (
        [(report["stage"], report["longest_page"]) for report in _reports(grow_at=share)]
        for share in (0.0, 1.0)
    )
    assert easy == [(1, 2), (1, 5)]
    assert hard == [(0, 2), (0, 2)]


def _reports(**changes):
    reports = []
    pretrain(NAMES, TINY.model_copy(update=changes | {"long_page": 5}), reports.append)
    return reports


def test_only_learned_tokens_count(first):
    model = first[0]
    ids_B_T = torch.tensor([[5, 6, 7, 8]])
    learn_B_T = torch.tensor([[False, False, True, False]])
    loss, _ = learned_loss(model, ids_B_T, learn_B_T)
    logits_T_V = model(ids_B_T).logits[0]
    assert loss.item() == pytest.approx(-logits_T_V[1].log_softmax(-1)[7].item(), abs=1e-5)


def test_padding_changes_nothing(first):
    model = first[0]
    ids_B_T = torch.tensor([[5, 6, 7]])
    learn_B_T = torch.tensor([[False, True, True]])
    padded, _ = learned_loss(
        model,
        torch.cat([ids_B_T, torch.zeros(1, 4, dtype=torch.long)], 1),
        torch.cat([learn_B_T, torch.zeros(1, 4, dtype=torch.bool)], 1),
    )
    alone, _ = learned_loss(model, ids_B_T, learn_B_T)
    assert padded.item() == pytest.approx(alone.item(), abs=1e-5)


def test_pieces_are_encoded_with_their_marks(first):
    tokenizer = first[1]
    pieces = [Piece("river: ", False), Piece("Belano\n", True)]
    ((ids, learn),) = encode_pieces(tokenizer, [pieces], 100)
    assert tokenizer.decode(ids) == "river: Belano\n"
    learned = [i for i, marked in zip(ids, learn, strict=True) if marked]
    assert tokenizer.decode(learned) == "Belano\n"


def test_the_learning_rate_warms_up_stays_and_falls():
    p = TINY.model_copy(update={"steps": 100, "warmup_steps": 10, "decay_share": 0.5})
    assert [_learning_rate(step, p) for step in (0, 9, 40, 75, 99)] == pytest.approx(
        [0.1, 1.0, 1.0, 0.5, 0.02]
    )

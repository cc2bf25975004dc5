"""Log-probs equal a plain forward pass per step, for any batch, window and temperature."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from agent_r1.mdp import visible_context
from agent_r1.parameters import ParameterError
from agent_r1.training import logprobs
from agent_r1.training.batching import collate, micro_batches
from agent_r1.training.logprobs import LogprobParameters, head_of, score, token_logprobs
from agent_r1.training.sequences import build_sequences
from tests.support.step_tables import rollouts, step
from tests.support.tiny_models import VOCABULARY, capped_model, flat_gradient, random_model

RANDOM = np.random.default_rng(0)


def ids(count: int) -> list[int]:
    return RANDOM.integers(0, VOCABULARY, count).tolist()


TABLE = rollouts(
    step("a/0", 0, ids(5), ids(4), temperature=0.7),
    step("a/0", 1, ids(3), ids(2), temperature=0.7),
    step("a/0", 2, ids(2), ids(3), context_prefix=3, context_start=8, temperature=0.7),
    step("a/0", 3, ids(2), ids(3), context_prefix=3, context_start=8, temperature=0.7),
    step("a/1", 0, ids(20), ids(6), temperature=0.0),
    # 0 is the pad id of the model and the filler of a block: here it is sampled, so it is a token
    step("b/0", 0, [0, 0], [0, 0, 0], temperature=1.3),
)


class FixedLogits(nn.Module):
    """A "model" whose logits are given, one row per position."""

    def __init__(self, logits_L_V: list[list[float]]) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits_L_V))
        self.device = torch.device("cpu")
        text = SimpleNamespace(vocab_size=len(logits_L_V[0]))
        self.config = SimpleNamespace(get_text_config=lambda: text)

    def get_output_embeddings(self) -> None:
        """None: there is no embedding behind the logits."""

    base_model = None

    def forward(self, input_ids: torch.Tensor, use_cache: bool) -> SimpleNamespace:
        return SimpleNamespace(logits=self.logits[None, : input_ids.shape[1]])


def naive_logprobs(model: nn.Module, table: list[dict]) -> list[float]:
    """One forward pass per step, over exactly the tokens that the policy saw."""
    streams: dict[str, list[int]] = {}
    result = []
    for row in table:
        stream = streams.setdefault(row["trajectory_id"], [])
        stream += list(row["context_token_ids"])
        action = list(row["action_token_ids"])
        seen = visible_context(stream, row["context_prefix"], row["context_start"])
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([seen + action])).logits[0, len(seen) - 1 : -1]
        scaled = torch.log_softmax(logits / (row["temperature"] or 1.0), -1)
        result += scaled.gather(1, torch.tensor(action)[:, None]).squeeze(1).tolist()
        stream += action
    return result


@pytest.mark.parametrize("size", [1, 3, 100])
def test_sequences_equal_a_forward_pass_per_step(size: int) -> None:
    model = random_model()
    found = token_logprobs(model, build_sequences(TABLE), size)
    assert found.dtype == np.float32
    expected = naive_logprobs(model, TABLE.to_dict("records"))
    assert found.tolist() == pytest.approx(expected, abs=2e-6)


def test_p07_padding_changes_nothing_even_if_the_filler_was_sampled() -> None:
    model, sequences = random_model(), build_sequences(TABLE)
    index = int(np.flatnonzero(sequences.trajectory == 2)[0])
    head, ones = head_of(model), torch.ones(3)
    alone = score(model, head, collate(sequences, np.array([index])), ones).logprobs_N
    block = collate(sequences, np.arange(len(sequences.trajectory)))
    assert block.tokens_B_L.shape[1] > 4
    padded = score(model, head, block, torch.ones(len(block.targets_N))).logprobs_N
    mine = torch.isin(block.actions_N, torch.from_numpy(sequences.actions.values[-3:]))
    assert padded[mine].tolist() == pytest.approx(alone.tolist(), abs=1e-6)


def test_blocks_hold_similar_lengths_and_every_action_once() -> None:
    sequences = build_sequences(TABLE)
    everything = np.arange(len(sequences.trajectory))
    blocks = list(micro_batches(sequences, everything, 2))
    widths = [block.tokens_B_L.shape[1] for block in blocks]
    assert widths == sorted(widths, reverse=True)
    actions = torch.cat([block.actions_N for block in blocks]).sort().values
    assert actions.tolist() == list(range(sequences.action_tokens))


def test_p24_logits_are_divided_by_the_temperature() -> None:
    model = FixedLogits([[2.0, 1.0, 0.0]])
    sequences = build_sequences(rollouts(step("a/0", 0, [1], [0], temperature=0.5)))
    assert token_logprobs(model, sequences).tolist() == pytest.approx([-0.142932], abs=1e-6)


def test_the_entropy_is_that_of_the_tempered_distribution() -> None:
    model = FixedLogits([[2.0, 1.0, 0.0]])
    sequences = build_sequences(rollouts(step("a/0", 0, [1], [0])))
    block = collate(sequences, np.array([0]))
    scores = score(model, None, block, torch.tensor([0.5]), "value")
    p = np.exp([4.0, 2.0, 0.0]) / np.exp([4.0, 2.0, 0.0]).sum()
    assert scores.entropy_N.tolist() == pytest.approx([-(p * np.log(p)).sum()], abs=1e-5)
    assert not scores.entropy_N.requires_grad
    assert score(model, None, block, torch.ones(1), "gradient").entropy_N.requires_grad


def test_p05_context_positions_are_not_in_log_probs_or_entropy() -> None:
    table = rollouts(step("a/0", 0, [1, 2], [0, 3]), step("a/0", 1, [2, 2], [1]))
    sequences = build_sequences(table)
    block = collate(sequences, np.array([0]))
    logits = np.random.default_rng(0).normal(size=(6, 4)).tolist()
    results = []
    for nudge in (0.0, 100.0):
        model = FixedLogits(logits)
        predicts_context = torch.tensor([0, 3, 4])
        model.logits.data[predicts_context] += nudge * torch.arange(4)
        scores = score(model, None, block, torch.ones(3), "gradient")
        (scores.logprobs_N.sum() + scores.entropy_N.sum()).backward()
        trained = model.logits.grad.abs().sum(1).ne(0)
        assert trained.tolist() == [False, True, True, False, False, True]
        results.append((scores.logprobs_N.tolist(), model.logits.grad.tolist()))
    assert results[0] == results[1]


def test_p28_chunks_are_exact_and_at_most_one_is_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sequences = build_sequences(TABLE)
    block = collate(sequences, np.arange(len(sequences.trajectory)))
    temperature = torch.from_numpy(sequences.temperature)[block.actions_N]
    results, sizes = [], []
    for chunk in (1 << 20, 4):
        monkeypatch.setattr(logprobs, "LOGITS_PER_CHUNK", chunk * VOCABULARY)
        model = random_model()
        embedding = head_of(model)

        def head(states: torch.Tensor, embedding: nn.Module = embedding) -> torch.Tensor:
            sizes.append(len(states))
            return embedding(states)

        scores = score(model, head, block, temperature, "gradient")
        (scores.logprobs_N.sum() + scores.entropy_N.sum()).backward()
        results.append((scores.logprobs_N.detach(), flat_gradient(model)))
    assert torch.allclose(results[0][0], results[1][0], atol=1e-6)
    assert torch.allclose(results[0][1], results[1][1], atol=1e-4)
    count = len(block.targets_N)
    assert sizes[0] == count
    # each chunk is computed twice: in the forward and again in the backward pass
    assert max(sizes[1:]) == 4
    assert sum(sizes[1:]) == 2 * count


def test_a_model_that_caps_its_logits_is_run_in_full() -> None:
    model = capped_model()
    assert head_of(model) is None
    assert head_of(random_model()) is not None
    found = token_logprobs(model, build_sequences(TABLE), 2)
    expected = naive_logprobs(model, TABLE.to_dict("records"))
    assert found.tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("size", [0, -1])
def test_a_block_without_sequences_is_refused(size: int) -> None:
    """A negative size would score nothing and leave all log-probs 0."""
    with pytest.raises(ParameterError, match=r"logprobs.micro_batch_sequences.*equal to 1"):
        LogprobParameters.read({"micro_batch_sequences": size}, "logprobs")


def test_only_the_requested_tokens_are_scored() -> None:
    sequences = build_sequences(TABLE)
    scored = np.zeros(sequences.action_tokens, bool)
    scored[[1, 13]] = True
    blocks = list(micro_batches(sequences, np.arange(len(sequences.trajectory)), 1, scored))
    assert sorted(torch.cat([block.actions_N for block in blocks]).tolist()) == [1, 13]
    assert len(blocks) == 2  # sequences without a scored token are not run

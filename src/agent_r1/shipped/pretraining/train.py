"""Trains the tiny base model.

1. `lessons.examples` draws an endless stream of fictional worlds and writes them in surface forms.
2. `train_tokenizer` learns the vocabulary from a few thousand examples.
3. `pretrain` trains a small Llama to predict text that follows from what it read. It starts with
   single, short pages and questions about each fact (`drill`). Pages grow as the model learns to
   read them: it discovers suddenly that a question means one line of a page, and sooner on dense,
   short text. Then all forms follow.

Everything is drawn from the seed. On the same machine, equal parameters give equal bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random

import torch
from torch.nn.functional import cross_entropy, pad
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from agent_r1.parameters import Parameters
from agent_r1.seeding import derive_seed
from agent_r1.shipped.pretraining.formats import Piece
from agent_r1.shipped.pretraining.lessons import LESSONS, examples, next_lesson
from agent_r1.shipped.pretraining.tokenizer import train_tokenizer
from agent_r1.shipped.pretraining.worlds import WorldMaker


class PretrainParameters(Parameters):
    """The group ``pretrain`` (``conf/base/parameters_pretrain.yml``): the tiny base model."""

    seed: int = 0
    threads: int = 2
    """CPU threads. The bytes depend on it, as floating-point sums are split by thread."""
    vocabulary: int = 2048
    tokenizer_examples: int = 8000
    hidden_size: int = 128
    layers: int = 4
    heads: int = 4
    key_value_heads: int = 4
    intermediate_size: int = 384
    rope_theta: float = 10000.0
    max_positions: int = 2048
    steps: int = 1200
    batch_size: int = 64
    learning_rate: float = 4e-3
    muon_learning_rate: float = 6e-3
    bfloat16: bool = True
    """Whether matrix products use bfloat16. Weights and their updates stay in float32."""
    warmup_steps: int = 50
    decay_share: float = 0.4
    """The learning rate is constant, then falls linearly to zero over this share of the run."""
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    grow_at: float = 0.9
    """Pages grow by one fact when this share of values is read from the correct line."""
    short_page: int = 2
    long_page: int = 10
    """Maximal facts per page, at the start and at the end of a lesson."""
    max_tokens: int = 448
    """Tokens per example. Longer examples are cut."""


_WIDTH, _COUNT = 64, 512
"""Tokens per row, and learned tokens per batch, are rounded up to multiples of these, as torch
compiles and keeps a kernel for every new shape of a bfloat16 product (gigabytes over a run)."""


def _rounded(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def encode_pieces(
    tokenizer: PreTrainedTokenizerFast, batch: Sequence[Sequence[Piece]], max_tokens: int
) -> list[tuple[list[int], list[int]]]:
    """Token ids, and a mark per token: 0 not learned, 1 learned, 2 first token of a read value."""
    flat = [piece.text for pieces in batch for piece in pieces]
    encoded = iter(tokenizer.backend_tokenizer.encode_batch_fast(flat, add_special_tokens=False))
    rows = []
    for pieces in batch:
        ids: list[int] = []
        learn: list[int] = []
        for piece in pieces:
            piece_ids = next(encoded).ids
            ids += piece_ids
            learn += [int(piece.learn)] * len(piece_ids)
            if piece.read:
                learn[-len(piece_ids)] = 2
        rows.append((ids[:max_tokens], learn[:max_tokens]))
    return rows


def _batches(
    stream: Iterator[list[Piece]],
    tokenizer: PreTrainedTokenizerFast,
    parameters: PretrainParameters,
    random: Random,
    count: int = 4,
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """``count`` batches. Rows of a batch have similar lengths, which reduces padding."""
    size = parameters.batch_size
    drawn = [next(stream) for _ in range(size * count)]
    rows = sorted(
        encode_pieces(tokenizer, drawn, parameters.max_tokens), key=lambda row: len(row[0])
    )
    batches = []
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        width = _rounded(len(part[-1][0]), _WIDTH)
        ids_B_T = torch.zeros(len(part), width, dtype=torch.long)
        learn_B_T = torch.zeros(len(part), width, dtype=torch.uint8)
        for i, (ids, learn) in enumerate(part):
            ids_B_T[i, : len(ids)] = torch.tensor(ids)
            learn_B_T[i, : len(ids)] = torch.tensor(learn)
        batches.append((ids_B_T, learn_B_T))
    random.shuffle(batches)
    return batches


def build_model(tokenizer: PreTrainedTokenizerFast, p: PretrainParameters) -> LlamaForCausalLM:
    """A randomly initialised Llama of the configured size with tied embeddings."""
    torch.manual_seed(derive_seed(p.seed, "pretrain", "init"))
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=p.hidden_size,
        intermediate_size=p.intermediate_size,
        num_hidden_layers=p.layers,
        num_attention_heads=p.heads,
        num_key_value_heads=p.key_value_heads,
        max_position_embeddings=p.max_positions,
        rope_parameters={"rope_type": "default", "rope_theta": p.rope_theta},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def build_optimizers(model: LlamaForCausalLM, p: PretrainParameters) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW for embeddings and norms."""
    matrices = [w for w in model.model.layers.parameters() if w.ndim == 2]
    taken = {id(w) for w in matrices}
    rest = [w for w in model.parameters() if id(w) not in taken]
    if not p.muon_learning_rate:
        matrices, rest = [], list(model.parameters())
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=p.learning_rate, betas=(0.9, 0.98), weight_decay=p.weight_decay)
    ]
    if matrices:
        optimizers.append(
            torch.optim.Muon(
                matrices,
                lr=p.muon_learning_rate,
                weight_decay=p.weight_decay,
                adjust_lr_fn="match_rms_adamw",
            )
        )
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return optimizers


def _learning_rate(step: int, p: PretrainParameters) -> float:
    decay_from = p.steps * (1 - p.decay_share)
    warm = min(1.0, (step + 1) / p.warmup_steps)
    cool = min(1.0, (p.steps - step) / max(1.0, p.steps - decay_from))
    return warm * cool


def learned_loss(
    model: LlamaForCausalLM, ids_B_T: torch.Tensor, learn_B_T: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean cross-entropy of the learned tokens, and the share of values that are read correctly.

    Args:
        model: the model.
        ids_B_T: int64, token ids.
        learn_B_T: uint8, marks of `encode_pieces`.

    The share is a mean over worlds, so worlds with many questions do not count more than others.
    """
    hidden_B_T_D = model.model(ids_B_T).last_hidden_state
    learned_B_T = learn_B_T[:, 1:] > 0
    labels_N = ids_B_T[:, 1:][learned_B_T]
    hidden_N_D = hidden_B_T_D[:, :-1][learned_B_T]
    missing = _rounded(len(labels_N), _COUNT) - len(labels_N)
    logits_N_V = model.lm_head(pad(hidden_N_D, (0, 0, 0, missing)))
    labels_N = pad(labels_N, (0, missing), value=-100)  # ignored by cross_entropy
    read_B_T = learn_B_T[:, 1:] == 2
    right_B_T = torch.zeros_like(read_B_T)
    right_B_T[learned_B_T] = (logits_N_V.argmax(-1) == labels_N)[: len(labels_N) - missing]
    reads_B = read_B_T.sum(1)
    right_B = (right_B_T & read_B_T).sum(1) / reads_B
    right = right_B[reads_B > 0].mean()
    return cross_entropy(logits_N_V, labels_N), right


def _update(
    model: LlamaForCausalLM,
    optimizers: Sequence[torch.optim.Optimizer],
    batch: tuple[torch.Tensor, torch.Tensor],
    step: int,
    p: PretrainParameters,
) -> tuple[float, float]:
    """One step of the optimizers; the loss and the share of values that were read correctly."""
    with torch.autocast("cpu", torch.bfloat16, enabled=p.bfloat16):
        loss, accuracy = learned_loss(model, *batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), p.max_grad_norm)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak_lr"] * _learning_rate(step, p)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return loss.item(), accuracy.item()


def pretrain(
    place_names: Sequence[str],
    parameters: PretrainParameters,
    report: Callable[[dict[str, float]], None] = lambda metrics: None,
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Train the tiny base model and its tokenizer. The seed decides everything.

    Args:
        place_names: the pool of names. The agent's tasks must not ask about them.
        parameters: sizes and schedule.
        report: called every 20 steps with step, loss, accuracy (share of values that were read from
            the correct line), stage, longest_page, tokens_per_second.

    Raises:
        FloatingPointError: the loss is not finite.
    """
    p = parameters
    torch.set_num_threads(p.threads)
    maker = WorldMaker(place_names)
    texts = Random(derive_seed(p.seed, "pretrain", "tokenizer"))
    corpus = examples(maker, texts, p.long_page)
    tokenizer = train_tokenizer(
        ("".join(piece.text for piece in next(corpus)) for _ in range(p.tokenizer_examples)),
        p.vocabulary,
    )
    model = build_model(tokenizer, p).train()
    _fit(model, tokenizer, maker, p, report)
    return model.eval(), tokenizer


def _fit(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    maker: WorldMaker,
    p: PretrainParameters,
    report: Callable[[dict[str, float]], None],
) -> None:
    """Train the model for ``p.steps`` steps, through all lessons."""
    optimizers = build_optimizers(model, p)
    random = Random(derive_seed(p.seed, "pretrain", "worlds"))
    began, tokens, step, longest = time.monotonic(), 0, 0, p.short_page
    stage = 0
    while step < p.steps:
        stream = examples(maker, random, longest, LESSONS[stage])
        batches = _batches(stream, tokenizer, p, random)[: p.steps - step]
        right = 0.0
        for batch in batches:
            loss, accuracy = _update(model, optimizers, batch, step, p)
            tokens += batch[0].numel()
            step += 1
            right += accuracy / len(batches)
            if step % 20 == 0:
                speed = tokens / max(1e-9, time.monotonic() - began)
                if not math.isfinite(loss):
                    raise FloatingPointError(f"pretraining diverged at step {step}")
                report(
                    {
                        "step": step,
                        "loss": loss,
                        "accuracy": accuracy,
                        "stage": stage,
                        "longest_page": longest,
                        "tokens_per_second": speed,
                    }
                )
        if right >= p.grow_at:
            stage, longest = next_lesson(stage, longest, p.short_page, p.long_page)

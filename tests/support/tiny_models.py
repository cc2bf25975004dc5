"""Tiny random models: what trainer and engine do must not depend on what the weights know.

All tests get theirs here. Equal arguments give equal weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from agent_r1.chat import load_tokenizer

VOCABULARY, ENGINE_VOCABULARY = 48, 64
"""Tokens of `random_model`, and of `engine_policy`."""

_SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "initializer_range": 0.2}
"""The weights are large: a wrong position or cache must change the log-probs visibly."""
_HEADS = {"intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2}
_ARCHITECTURES = {
    "gemma2": (Gemma2Config, _HEADS | {"num_key_value_heads": 1, "head_dim": 16}),
    "gpt2": (GPT2Config, {"n_head": 4}),
    "llama": (LlamaConfig, _HEADS),
    "mamba": (MambaConfig, {}),
    "qwen2": (Qwen2Config, _HEADS),
    "qwen3": (Qwen3Config, _HEADS | {"head_dim": 8}),
}
CACHED = ("llama", "qwen2", "qwen3")
"""Architectures of `engine_policy`."""


def tiny_model(architecture: str = "llama", seed: int = 0, **changes: Any) -> PreTrainedModel:
    """2 layers x 32, in float32; ``changes`` are over its config."""
    torch.manual_seed(seed)
    attention = {key: changes.pop(key) for key in ("attn_implementation",) if key in changes}
    config, own = _ARCHITECTURES[architecture]
    chosen = config(**({"vocab_size": VOCABULARY, "pad_token_id": 0} | _SIZE | own | changes))
    return AutoModelForCausalLM.from_config(chosen, **attention).eval()


def random_model(seed: int = 0, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A Llama with tied embeddings: the policy that is trained in most tests."""
    llama = tiny_model(
        seed=seed,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
    )
    return llama.to(dtype)


def capped_model() -> PreTrainedModel:
    """A Gemma 2, which caps its logits: they are more than the output embedding of its states."""
    return tiny_model(
        "gemma2", num_attention_heads=2, initializer_range=0.3, final_logit_softcapping=1.0
    )


def write_tokenizer(folder: Path, vocabulary: int = VOCABULARY) -> Path:
    """A word for each token: ``w0``, ``w1`` …"""
    words = {f"w{number}": number for number in range(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return folder


def write_policy(folder: Path, seed: int = 0) -> Path:
    """`random_model` with its tokenizer."""
    random_model(seed).save_pretrained(folder)
    return write_tokenizer(folder)


def engine_policy(folder: Path, architecture: str = "llama", seed: int = 0) -> Path:
    """A model with grouped-query attention and longer contexts, without a tokenizer."""
    model = tiny_model(
        architecture,
        seed,
        vocab_size=ENGINE_VOCABULARY,
        head_dim=8,
        max_position_embeddings=256,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    model.save_pretrained(folder)
    return folder


def write_stopping_policy(folder: Path, stop: str) -> Path:
    """A model for the tokenizer in ``folder`` that often samples the token ``stop``: its turns are
    parsed and go on."""
    tokenizer = load_tokenizer(folder)
    model = tiny_model(
        vocab_size=len(tokenizer),
        max_position_embeddings=256,
        initializer_range=0.02,
        pad_token_id=None,
    )
    with torch.no_grad():
        model.lm_head.weight[tokenizer.convert_tokens_to_ids(stop)] *= 60
    model.save_pretrained(folder)
    return folder


def flat_gradient(model: PreTrainedModel) -> torch.Tensor:
    """All gradients as one vector; a parameter without one counts as 0."""
    return torch.cat(
        [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in model.parameters()]
    )


def flat_weights(model: PreTrainedModel) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])

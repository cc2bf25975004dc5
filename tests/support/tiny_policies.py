"""Random tiny policies: what the trainer does must not depend on what the weights know."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel, PreTrainedTokenizerFast

VOCABULARY = 48


def random_model(seed: int = 0, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """2 layers x 32, tied embeddings."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.2,  # wide: a wrong position must change the log-probs visibly
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=0,
    )
    return AutoModelForCausalLM.from_config(config).to(dtype).eval()


def write_tokenizer(folder: Path) -> Path:
    words = {f"w{number}": number for number in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    return folder


def write_policy(folder: Path, seed: int = 0) -> Path:
    """A random policy with its tokenizer."""
    random_model(seed).save_pretrained(folder)
    return write_tokenizer(folder)


def flat_gradient(model: PreTrainedModel) -> torch.Tensor:
    """All gradients as one vector; a parameter without one counts as 0."""
    return torch.cat(
        [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in model.parameters()]
    )


def flat_weights(model: PreTrainedModel) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])

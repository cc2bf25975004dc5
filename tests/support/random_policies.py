"""Random tiny models: what an engine does must not depend on what the weights know."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import torch
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    Qwen2Config,
    Qwen3Config,
)

from agent_r1.engines.base import Generation, Sampling
from agent_r1.engines.local import LocalEngine

VOCABULARY = 64
STOP = 3
PROMPTS = {
    f"s{i}": [int(token) for token in np.random.default_rng(i).integers(4, 64, 5 + 7 * i)]
    for i in range(6)
}
APPROX = {"abs": 1e-4}
CONFIGS = {"llama": LlamaConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}


def make_policy(folder: Path, architecture: str = "llama", seed: int = 0) -> Path:
    """A random model of 2 layers with grouped-query attention, saved to ``folder``."""
    torch.manual_seed(seed)
    config = CONFIGS[architecture](
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=256,
        initializer_range=0.3,  # wide: a wrong cache must change the log-probs visibly
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def reference_scores(policy: Path, context: list[int], action: list[int], temperature=1.0):
    """log_softmax(logits / T) where each action token is predicted, [tokens, vocabulary]: by one
    plain forward pass over everything."""
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    with torch.no_grad():
        logits = model(torch.tensor([context + action])).logits[0]
    return torch.log_softmax(logits[len(context) - 1 : -1] / temperature, -1)


def reference_logprobs(
    policy: Path, context: list[int], action: list[int], temperature: float = 1.0
) -> list[float]:
    """The log-probs of the action's own tokens; see `reference_scores`."""
    scores = reference_scores(policy, context, action, temperature)
    return scores.gather(1, torch.tensor(action)[:, None]).squeeze(1).tolist()


def sampling(max_tokens: int = 8, **others) -> Sampling:
    """Sampling with the defaults of these tests."""
    return Sampling(**({"stop_token_ids": (STOP,), "seed": 1} | others), max_tokens=max_tokens)


def generate(
    engine: LocalEngine, requests: dict[str, list[int]], how: Sampling | dict[str, Sampling]
) -> dict[str, Generation]:
    """All requests in one tick."""

    async def run() -> list[Generation]:
        return await asyncio.gather(
            *(
                engine.generate(name, tokens, how[name] if isinstance(how, dict) else how)
                for name, tokens in requests.items()
            )
        )

    return dict(zip(requests, asyncio.run(run()), strict=True))

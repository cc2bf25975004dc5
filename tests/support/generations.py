"""What is asked of an engine, and the log-probs that a plain forward pass gives for its answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from agent_r1.engines.base import Generation, Sampling
from agent_r1.engines.local import LocalEngine
from tests.support.tiny_models import ENGINE_VOCABULARY

STOP = 3
PROMPTS = {
    f"s{i}": np.random.default_rng(i).integers(4, ENGINE_VOCABULARY, 5 + 7 * i).tolist()
    for i in range(6)
}
APPROX = {"abs": 1e-4}


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

"""A batch that has all that makes an update hard, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from agent_r1 import tables
from agent_r1.losses.registry import objective
from agent_r1.training.accumulation import accumulate
from agent_r1.training.logprobs import head_of, token_logprobs
from agent_r1.training.selection import select
from agent_r1.training.sequences import build_sequences
from agent_r1.training.strategies import TorchStrategy
from agent_r1.training.update import UpdateParameters, train
from agent_r1.training.update_batch import UpdateBatch, prepare
from tests.support.step_tables import per_token, rollouts, step
from tests.support.tiny_models import VOCABULARY, flat_gradient, flat_weights, random_model

RANDOM = np.random.default_rng(0)
PLAIN = {"aggregation": "token_mean", "warmup_steps": 0, "eps": 1e-8}
"""Parameters of an update: every token counts alike, and AdamW as torch has it."""


def ids(count: int) -> list[int]:
    return RANDOM.integers(0, VOCABULARY, count).tolist()


# Groups p and q of 4; lengths, steps and temperatures differ; one window moves.
TABLE = rollouts(
    *(
        step(f"{task}/{sample}", index, ids(3 + sample), ids(2 + sample), temperature=temperature)
        for task, temperature in (("p", 1.0), ("q", 0.7))
        for sample in range(4)
        for index in range(1 + sample % 2)
    ),
    step("r/0", 0, ids(4), ids(3)),
    step("r/0", 1, ids(2), ids(3), context_prefix=2, context_start=5),
)
TOKENS = int(sum(len(action) for action in TABLE["action_token_ids"]))
OWNER = np.repeat(TABLE["trajectory_id"], [len(a) for a in TABLE["action_token_ids"]]).to_numpy()
AT_POLICY = token_logprobs(random_model(), build_sequences(TABLE))
AT_REFERENCE = token_logprobs(random_model(seed=1), build_sequences(TABLE))
ADVANTAGES = dict(zip(sorted(set(OWNER)), RANDOM.normal(size=9), strict=True))
PAIRS = (("p/2", "p/0"), ("q/1", "q/3"), ("p/1", "p/3"), ("q/0", "q/2"), ("r/0", "p/3"))
A = np.array([ADVANTAGES[name] for name in OWNER])
# A policy that has moved since it acted, and a sampler that is not quite the trainer.
MOVED = AT_POLICY + RANDOM.normal(scale=0.3, size=TOKENS).astype(np.float32)
SAMPLED = MOVED + RANDOM.normal(scale=0.2, size=TOKENS).astype(np.float32)


def update_tables(
    advantages: np.ndarray = A,
    mask: np.ndarray | None = None,
    policy_logprobs: np.ndarray = AT_POLICY,
    reference_logprobs: np.ndarray = AT_REFERENCE,
    sampler_logprobs: np.ndarray = AT_POLICY,
    values: Sequence[float | None] | None = None,
    returns: Sequence[float | None] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """``rollouts``, ``logprobs`` and ``advantages`` with these flat columns."""
    mask = np.ones(TOKENS, bool) if mask is None else mask
    said = {"policy_logprobs": policy_logprobs, "reference_logprobs": reference_logprobs}
    said |= {} if values is None else {"values": values}
    targets = {} if returns is None else {"returns": returns}
    sampled = per_token(TABLE, "logprobs", policy_logprobs=sampler_logprobs)
    return (
        TABLE.assign(action_logprobs=sampled["policy_logprobs"]),
        per_token(TABLE, "logprobs", **said),
        per_token(TABLE, "advantages", advantages=advantages, loss_mask=mask, **targets),
    )


def preferences(pairs: Sequence[tuple[str, str]] = PAIRS) -> pd.DataFrame:
    """Better and worse trajectories by id."""
    rows = [
        {
            "pair_id": f"{chosen}>{rejected}",
            "group_id": chosen[0],
            "chosen_trajectory_id": chosen,
            "rejected_trajectory_id": rejected,
            "chosen_reward": 1.0,
            "rejected_reward": 0.0,
        }
        for chosen, rejected in pairs
    ]
    return tables.from_rows(rows, "preferences")


def batch(**changes: Any) -> UpdateBatch:
    """Ready to be trained on; by a critic too if there are ``returns``."""
    return prepare(
        *update_tables(**changes),
        needs_reference=True,
        preferences=preferences(),
        needs_values="returns" in changes,
    )


def gradient(
    of: UpdateBatch, model: torch.nn.Module | None = None, **parameters: Any
) -> torch.Tensor:
    """Gradient of one mini-batch of everything that the objective trains on."""
    model = model or random_model()
    parameters = UpdateParameters(**PLAIN | parameters)
    of = select(of, objective(parameters.objective))
    everything = np.arange(len(of.sequences.trajectories.ids))
    accumulate(
        TorchStrategy(model, parameters.optimizer), head_of(model), of, everything, parameters
    )
    return flat_gradient(model)


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def run(of: UpdateBatch, seed: int = 0, **parameters: Any) -> tuple[torch.Tensor, pd.DataFrame]:
    """Weights and metrics after training a fresh model."""
    model, parameters = random_model(), UpdateParameters(**PLAIN | parameters)
    _, metrics = train(TorchStrategy(model, parameters.optimizer), of, parameters, seed)
    return flat_weights(model), metrics


def metric(metrics: pd.DataFrame, name: str) -> list[float]:
    return metrics.loc[metrics["metric"] == name, "value"].tolist()

"""Node: compute the trainer's own log-probs of the sampled tokens."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from agent_r1 import tables
from agent_r1.training.logprobs import LogprobParameters, logprobs_table
from agent_r1.training.policy import ModelParameters, use_threads


def compute_logprobs(
    rollouts: pd.DataFrame,
    policy: Path,
    reference: Path,
    critic: Path,
    parameters: LogprobParameters,
    model: ModelParameters,
) -> pd.DataFrame:
    """The ``logprobs`` table: one row per row of ``rollouts``, in the same order.

    ``values`` and ``bootstrap_value`` are null unless ``logprobs.values`` is true; they are 0 if
    ``critic`` is the empty checkpoint.

    Raises:
        CriticError: ``logprobs.values`` is true and ``critic`` does not fit the policy.
    """
    use_threads(model)
    return logprobs_table(
        tables.conform(rollouts, "rollouts"),
        policy,
        reference,
        critic,
        parameters,
        model,
    )

"""What a critic is trained on: the returns of table ``advantages``, as far as there are any.

A return counts where the token is trained on (``loss_mask``). An estimator at step level has one
per step and nulls on the step's other tokens; those are left out, they are not zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from agent_r1.schemas import SchemaError
from agent_r1.training.sequences import Sequences
from agent_r1.training.token_columns import nullable_token_column

_VALUES = (
    "set logprobs.values to true. If it is, the table is older: kedro rerun compute_logprobs "
    "--downstream cascade, with the same --iteration and --params"
)
_RETURNS = (
    "set advantage.estimator to one that has returns, such as gae. If it is, the table is older: "
    "kedro rerun compute_advantages --downstream cascade, with the same --iteration and --params"
)


@dataclass(frozen=True)
class ValueTargets:
    """What a critic is trained on; per-token arrays in flat action order."""

    old_values: torch.Tensor
    """float32, units of the return: of the critic before the update."""
    returns: torch.Tensor
    """float32; NaN where there is none."""
    trained: np.ndarray
    """bool: the token is trained on and has a return."""

    def health(self) -> dict[str, float]:
        """``return_variance`` and ``explained_variance`` over the trained tokens.

        The explained variance is 1 - Var(returns - old values) / Var(returns): 1 if the values are
        the returns but for a constant, 0 for a critic that is constant, below 0 for one that does
        harm. With lam = 1 and gamma = 1 the returns are the Monte-Carlo returns, the rewards that
        were really had from there on; otherwise they hold the critic's own values. It is left out
        where all returns are equal: there is nothing to explain.
        """
        if not self.trained.any():
            return {}
        returns = self.returns.numpy()[self.trained].astype(np.float64)
        errors = returns - self.old_values.numpy()[self.trained]
        variance = float(returns.var())
        if np.ptp(returns) == 0:
            return {"return_variance": 0.0}
        explained = 1 - float(errors.var()) / variance
        return {"return_variance": variance, "explained_variance": explained}


def value_targets(
    logprobs: pd.DataFrame, advantages: pd.DataFrame, sequences: Sequences, mask: np.ndarray
) -> ValueTargets:
    """The targets in two conformed tables that stand in the order of the sequences' table.

    Args:
        logprobs: column ``values``.
        advantages: column ``returns``.
        sequences: of the rollouts.
        mask: bool[action tokens]: what is trained on.

    Raises:
        SchemaError: a step with a trained token has no values or no returns, or a trained token has
            a value or a return that is not finite.
    """
    old, _ = nullable_token_column(logprobs, "logprobs", "values", sequences.action_lengths)
    returns, there = nullable_token_column(
        advantages, "advantages", "returns", sequences.action_lengths
    )
    trained_rows = np.bincount(sequences.action_row[mask], minlength=len(advantages)) > 0
    _require(logprobs, "logprobs", "values", trained_rows, _VALUES)
    _require(advantages, "advantages", "returns", trained_rows, _RETURNS)
    trained = mask & there
    for name, values in (("values", old), ("returns", returns)):
        if not np.isfinite(values[trained]).all():
            raise SchemaError(f"'{name}' of a trained token is null or not finite")
    return ValueTargets(torch.tensor(old), torch.tensor(returns), trained)


def _require(frame: pd.DataFrame, table: str, column: str, rows: np.ndarray, remedy: str) -> None:
    bad = np.flatnonzero(frame[column].isna().to_numpy() & rows)
    if len(bad):
        name, step = frame["trajectory_id"].iloc[bad[0]], frame["step_index"].iloc[bad[0]]
        raise SchemaError(
            f"table '{table}' has no {column} of trajectory '{name}', step {step}, and "
            f"update.critic.backbone needs them: {remedy}. Or set update.critic.backbone to none"
        )

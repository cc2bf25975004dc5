"""The critic's targets: the returns in table ``advantages``.

A return is used where the token is trained (``loss_mask``). At step level an estimator gives one
return per step and null on the step's other tokens; these tokens are left out, not treated as 0.
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
    """The critic's targets; per-token arrays are in flat action order."""

    old_values: torch.Tensor
    """float32: values of the critic before the update, in units of the return."""
    returns: torch.Tensor
    """float32; NaN for tokens without a return."""
    trained: np.ndarray
    """bool: the token is trained on and has a return."""

    def health(self) -> dict[str, float]:
        """``return_variance`` and ``explained_variance`` over the trained tokens.

        The explained variance is 1 - Var(returns - old values) / Var(returns): 1 if the values
        equal the returns up to a constant, 0 for a constant critic, below 0 for a harmful one. With
        lam = 1 and gamma = 1 the returns are Monte-Carlo returns, the sums of the rewards that
        followed; otherwise they contain the critic's own values. If all returns are equal there is
        nothing to explain, and it is left out.
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
    """The targets from two conformed tables in the row order of ``sequences``.

    Args:
        logprobs: read for column ``values``.
        advantages: read for column ``returns``.
        sequences: the sequences of the rollouts.
        mask: bool[action tokens]: trained tokens.

    Raises:
        SchemaError: a step with a trained token has no values or returns, or a trained token has a
            value or return that is not finite.
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

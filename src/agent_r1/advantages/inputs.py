"""The inputs of an estimator: the tables of an iteration, trajectory after trajectory.

1. Rows are sorted by trajectory and step, so the action tokens of a trajectory are one slice of a
   flat array. Context tokens are left out: the last token of an action is followed by the first
   token of the next.
2. Columns are read on demand. A group estimator reads no log-probs, and a missing value is an error
   only if it is needed.
3. A trajectory without a reward is not scored. It is in no statistic, and its other columns are
   ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch

from agent_r1 import tables
from agent_r1.kl.estimators import kl_estimator
from agent_r1.mdp import EndReason
from agent_r1.schemas import SchemaError
from agent_r1.tables.arrays import ragged
from agent_r1.tables.trajectories import Trajectories, align, find_trajectories, labels

CUT = (EndReason.TOKEN_BUDGET, EndReason.MAX_STEPS, EndReason.CONTEXT_OVERFLOW)
"""The limits that end a trajectory before the agent is done."""

_BLOCK = 1 << 14
"""Rows per block of the KL computation; keeps the float64 copies small."""

_OLDER = (
    "If it is, the table is older: kedro rerun compute_logprobs --downstream cascade, with the "
    "same --iteration and --params"
)


def row_sums(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """float64[rows]: sums of consecutive slices of ``values``; 0 for an empty one."""
    sums = np.zeros(len(lengths))
    filled = lengths > 0
    if filled.any():
        begins = np.cumsum(lengths) - lengths
        sums[filled] = np.add.reduceat(values, begins[filled], dtype=np.float64)
    return sums


@dataclass(frozen=True)
class EstimatorInputs:
    """Rewards, values and states of whole trajectories, in the row order of this module."""

    rollouts: pd.DataFrame
    """Conformed and sorted by trajectory and step."""
    rewards: pd.DataFrame
    """Conformed, in the order of ``rollouts``."""
    raw_logprobs: pd.DataFrame | None
    """As passed in; read it through `logprobs`."""
    trajectories: Trajectories
    """The trajectories in the sorted rows."""
    given_order: np.ndarray | None = None
    """int64[rows]: for each input row, its sorted row; None if the input was sorted."""
    kl_coef: float = 0.0
    kl_estimator: str = "k1"

    @classmethod
    def read(
        cls,
        rollouts: pd.DataFrame,
        rewards: pd.DataFrame,
        logprobs: pd.DataFrame | None,
        kl_coef: float = 0.0,
        kl_estimator: str = "k1",
    ) -> EstimatorInputs:
        """Inputs from conformed ``rollouts`` and ``rewards``; ``logprobs`` need not be conformed.

        Raises:
            SchemaError: ``rollouts`` and ``rewards`` do not hold the same steps.
        """
        found = find_trajectories(rollouts, "rollouts")
        in_order = Trajectories(found.ids, np.arange(len(rollouts)), found.offsets)
        if not found.sorted:
            rollouts = rollouts.take(found.order).reset_index(drop=True)
        rewards = align(rewards, "rewards", rollouts)
        inverse = np.argsort(found.order) if not found.sorted else None
        return cls(rollouts, rewards, logprobs, in_order, inverse, kl_coef, kl_estimator)

    @property
    def offsets(self) -> np.ndarray:
        """int64[trajectories + 1]: trajectory ``i`` is rows ``offsets[i]:offsets[i + 1]``."""
        return self.trajectories.offsets

    @property
    def row_counts(self) -> np.ndarray:
        """int64[trajectories]: number of rows of each trajectory."""
        return np.diff(self.offsets)

    @cached_property
    def action_lengths(self) -> np.ndarray:
        """int64[rows]: action tokens of each row."""
        return ragged(self.rollouts["action_token_ids"]).lengths

    @cached_property
    def token_offsets(self) -> np.ndarray:
        """int64[rows + 1]: row ``i`` is action tokens ``token_offsets[i]:token_offsets[i + 1]``."""
        return np.concatenate([[0], np.cumsum(self.action_lengths)]).astype(np.int64)

    @cached_property
    def groups(self) -> np.ndarray:
        """int64[trajectories]: the group of each trajectory, 0 … groups - 1."""
        return labels(self.rollouts["group_id"].take(self.trajectories.first_rows))

    @cached_property
    def environments(self) -> np.ndarray:
        """int64[trajectories]: the environment of each trajectory, 0 … environments - 1."""
        return labels(self.rollouts["environment"].take(self.trajectories.first_rows))

    @cached_property
    def states(self) -> np.ndarray:
        """int64[rows]: equal for equal group and ``state_key``, 0 … states - 1."""
        keys = labels(self.rollouts["state_key"])
        pairs = self.per_row(self.groups) * (keys.max(initial=0) + 1) + keys
        return np.unique(pairs, return_inverse=True)[1]

    @cached_property
    def cut(self) -> np.ndarray:
        """bool[trajectories]: whether a limit of `CUT` ended it."""
        last = self.rollouts[["truncated", "end_reason"]].take(self.trajectories.last_rows)
        reason = last["end_reason"].isin([reason.value for reason in CUT])
        return reason.to_numpy(bool) & last["truncated"].to_numpy(bool)

    @cached_property
    def outcomes(self) -> np.ndarray:
        """float64[trajectories]: ``trajectory_reward``; NaN if not scored."""
        column = self.rewards["trajectory_reward"].take(self.trajectories.last_rows)
        outcomes = column.to_numpy(np.float64, na_value=np.nan)
        bad = np.flatnonzero(column.notna().to_numpy() & ~np.isfinite(outcomes))
        if len(bad):
            row = self.trajectories.last_rows[bad[0]]
            raise SchemaError(
                f"{self._where('rewards', row)}: trajectory_reward is {outcomes[bad[0]]}"
            )
        return outcomes

    @property
    def scored(self) -> np.ndarray:
        """bool[trajectories]: whether it has a reward."""
        return ~np.isnan(self.outcomes)

    @cached_property
    def trajectory_rewards(self) -> np.ndarray:
        """float64[trajectories]: the reward minus the KL of all its tokens; NaN if not scored."""
        if not self.kl_coef:
            return self.outcomes
        return self.outcomes - row_sums(self.kl_of_rows, self.row_counts)

    @cached_property
    def step_rewards(self) -> np.ndarray:
        """float64[rows]: the reward of each step, before the KL; 0 where not scored.

        A trajectory scored only as a whole has its reward on its last step.
        """
        rewards = self.rewards["reward"].to_numpy(np.float64, na_value=np.nan)
        unknown = np.isnan(rewards)
        whole = self.scored & (row_sums(unknown, self.row_counts) == self.row_counts)
        last = self.trajectories.last_rows[whole]
        rewards[last], unknown[last] = self.outcomes[whole], False
        scored = self.per_row(self.scored)
        bad = np.flatnonzero(scored & (unknown & ~self.per_row(whole) | np.isinf(rewards)))
        if len(bad):
            raise SchemaError(
                f"{self._where('rewards', bad[0])}: reward is {rewards[bad[0]]}, but the "
                "trajectory is scored: give a finite reward to every step, or to none"
            )
        return np.where(scored & ~unknown, rewards, 0.0)

    @cached_property
    def kl_of_rows(self) -> np.ndarray:
        """float64[rows]: sum of the KL penalties of each row's action tokens."""
        sums = np.zeros(len(self.action_lengths))
        for rows, _, penalty in self.kl_penalties():
            sums[rows] = row_sums(penalty, self.action_lengths[rows])
        return sums

    def kl_penalties(self) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """kl_coef · KL(policy || reference) per action token, in units of reward.

        Yields blocks of rows: the rows, their tokens, float64[tokens]. All blocks at once, in
        float64, would be several times as large as the tables.

        Raises:
            SchemaError: a scored trajectory has no log-probs of the policy or the reference.
        """
        remedy = f"advantage.kl_coef is not 0, so set logprobs.reference to true. {_OLDER}"
        policy = self._per_action("policy_logprobs", "run compute_logprobs")
        reference = self._per_action("reference_logprobs", remedy)
        estimate = kl_estimator(self.kl_estimator)
        for begin in range(0, len(self.action_lengths), _BLOCK):
            rows = slice(begin, min(begin + _BLOCK, len(self.action_lengths)))
            tokens = slice(self.token_offsets[rows.start], self.token_offsets[rows.stop])
            ours, theirs = (
                torch.from_numpy(x[tokens].astype(np.float64)) for x in (policy, reference)
            )
            yield rows, tokens, self.kl_coef * estimate(ours, theirs).numpy()

    @cached_property
    def values(self) -> np.ndarray:
        """float[action tokens]: V at the position that predicts each token."""
        return self._per_action("values", f"set logprobs.values to true. {_OLDER}")

    @cached_property
    def bootstrap_values(self) -> np.ndarray:
        """float64[trajectories]: V of the state where it stopped; 0 unless it was truncated."""
        last = self.trajectories.last_rows
        truncated = self.rollouts["truncated"].to_numpy(bool)[last]
        truncated &= ~self.rollouts["terminated"].to_numpy(bool)[last]
        values = self.logprobs["bootstrap_value"].take(last).to_numpy(np.float64, na_value=np.nan)
        acted = row_sums(self.action_lengths, self.row_counts) > 0
        bad = np.flatnonzero(truncated & acted & self.scored & ~np.isfinite(values))
        if len(bad):
            raise SchemaError(
                f"{self._where('logprobs', last[bad[0]])}: bootstrap_value is {values[bad[0]]}, "
                "but the trajectory is truncated, so V of the state it stopped in is needed: set "
                f"logprobs.values to true, or advantage.bootstrap_truncated to false. "
                f"{_OLDER}"
            )
        return np.where(truncated & np.isfinite(values), values, 0.0)

    @cached_property
    def logprobs(self) -> pd.DataFrame:
        """The conformed table ``logprobs`` in the row order of ``rollouts``.

        ``reference_logprobs`` is null if ``kl_coef`` is 0: it is large and may have to be copied.

        Raises:
            SchemaError: the table is missing, or does not hold the steps of ``rollouts``.
        """
        if self.raw_logprobs is None:
            raise SchemaError(
                "advantage.estimator or advantage.kl_coef needs table 'logprobs', which was not "
                "given: run compute_logprobs"
            )
        raw = self.raw_logprobs
        if not self.kl_coef:
            raw = raw.drop(columns="reference_logprobs", errors="ignore")
        return align(tables.conform(raw, "logprobs"), "logprobs", self.rollouts)

    def per_row(self, values: np.ndarray) -> np.ndarray:
        """Repeat one value per trajectory over its rows."""
        return np.repeat(values, self.row_counts)

    def per_token(self, values: np.ndarray) -> np.ndarray:
        """Repeat one value per trajectory over its action tokens."""
        return np.repeat(values, row_sums(self.action_lengths, self.row_counts).astype(np.int64))

    def _per_action(self, column: str, remedy: str) -> np.ndarray:
        """float[action tokens]: a list column of `logprobs`, not copied if all values are finite.

        0 where a trajectory is not scored and has no value.

        Raises:
            SchemaError: a scored trajectory has no finite value for each of its action tokens.
        """
        values, offsets = ragged(self.logprobs[column])
        fits = np.diff(offsets) == self.action_lengths
        scored = self.per_row(self.scored)
        bad = np.flatnonzero(scored & ~fits)
        if len(bad):
            missing = self.logprobs[column].isna().to_numpy()[bad[0]]
            what = "is missing" if missing else "does not have the length of the action"
            raise SchemaError(f"{self._where('logprobs', bad[0])}: {column} {what}; {remedy}")
        if not fits.all():  # of unscored rows
            filled = np.zeros(self.token_offsets[-1], values.dtype)
            filled[np.repeat(fits, self.action_lengths)] = values[np.repeat(fits, np.diff(offsets))]
            values = filled
        finite = np.isfinite(values)
        if not finite.all():
            row = np.repeat(np.arange(len(fits)), self.action_lengths)[~finite]
            if scored[row].any():
                where = self._where("logprobs", row[scored[row]][0])
                raise SchemaError(f"{where}: {column} of a token is null or not finite; {remedy}")
            values = np.where(finite, values, 0)
        return values

    def _where(self, table: str, row: int) -> str:
        steps = self.rollouts.iloc[row]
        return f"table '{table}', trajectory '{steps['trajectory_id']}', step {steps['step_index']}"

"""The engine of a replay: it plays back a table of rollouts.

1. At step t of a trajectory, it returns the action in the table's row (trajectory, t).
2. It returns only actions that an engine could have sampled. An action ends at its first stop
   token, at its token limit, and before a value that is not a token id. This changes an action only
   if the table was tampered with, and then the replay differs.
3. It never fails. If the table has no row for a step, it returns an empty action, which ends the
   trajectory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import pandas as pd

from agent_r1 import tables
from agent_r1.engines.base import Sampling
from agent_r1.engines.playback import KnownAction, PlaybackEngine

_COLUMNS = [
    "trajectory_id",
    "step_index",
    "action_token_ids",
    "action_logprobs",
    "policy_version",
]


class RecordedEngine(PlaybackEngine):
    """An `agent_r1.engines.base.Engine` whose streams are named by trajectory ids."""

    def __init__(self, rollouts: pd.DataFrame, version: str | None = None):
        """
        Args:
            rollouts: rows in any order. If several rows have the same step, the first is played.
            version: sha256 of the policy that acted; None for the version in most rows.

        Raises:
            SchemaError: ``rollouts`` does not fit its schema.
        """
        table = tables.to_arrow(rollouts, "rollouts", extra="drop").select(_COLUMNS)
        self._actions: dict[tuple[str, int], tuple[list[int], list[float]]] = {}
        versions: Counter[str] = Counter()
        for trajectory, step, token_ids, logprobs, said in zip(
            *(column.to_pylist() for column in table.columns), strict=True
        ):
            self._actions.setdefault((trajectory, step), (token_ids, logprobs))
            versions[said] += 1
        super().__init__(version or next((name for name, _ in versions.most_common(1)), ""))

    def _action(self, stream: str, position: int, sampling: Sampling) -> KnownAction:
        token_ids, logprobs = self._actions.get((stream, position), ((), ()))
        sampled, finish_reason = _as_sampled(token_ids, sampling)
        return sampled, _one_each(logprobs, len(sampled)), finish_reason


def _as_sampled(
    token_ids: Sequence[int | None], sampling: Sampling
) -> tuple[list[int], Literal["stop", "length"]]:
    """The action that sampling gives if these tokens are drawn, and its finish reason."""
    sampled: list[int] = []
    for token in token_ids[: sampling.max_tokens]:
        if token is None or token < 0:
            break
        sampled.append(token)
        if token in sampling.stop_token_ids:
            return sampled, "stop"
    return sampled, "length"


def _one_each(logprobs: Sequence[float | None], count: int) -> list[float]:
    """One log-prob per token. One that was not recorded is NaN, which equals no value."""
    given = [math.nan if value is None else value for value in logprobs[:count]]
    return given + [math.nan] * (count - len(given))

"""What a reward term is, what it reads, and the parameters that all terms share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from agent_r1.parameters import Parameters
from agent_r1.tables.trajectories import Trajectories


class TermParameters(Parameters):
    """Parameters that every term has."""

    weight: float = 1.0
    """Factor on the term's value."""
    cap: float | None = Field(None, gt=0)
    """Largest absolute value of the term's weighted sum over one trajectory; null: no limit.
    Without a cap, a term that pays per call or per step can be earned without end."""

    @field_validator("*")
    @classmethod
    def _finite(cls, value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must be a finite number")
        return value


@dataclass(frozen=True)
class Steps:
    """The columns that terms read, one element per row, in table order."""

    trajectories: Trajectories
    action_type: Sequence[str]
    action_text: Sequence[str]
    tool_calls: Sequence[str]
    """JSON; see the schema of ``rollouts``."""
    tool_results: Sequence[str]
    """JSON; see the schema of ``rollouts``."""
    env_reward: np.ndarray
    """float64[rows]: the environment's own reward; NaN where it gave none."""
    answers: Sequence[Sequence[str]]
    """Accepted answers of the row's task."""
    action_tokens: np.ndarray
    """int64[rows]: sampled tokens of the row's action."""
    prompt_tokens: np.ndarray
    """int64[rows]: tokens visible to the policy when it acted."""
    prompts: Sequence[str]
    """The prompt of the row's task."""
    payloads: Sequence[str]
    """JSON: the payload of the row's task."""

    def answering_rows(self) -> np.ndarray:
        """int64: the row of the last answer in each trajectory that has one.

        One row per trajectory, so an answer in every turn is rewarded once.
        """
        answered = np.array([kind == "answer" for kind in self.action_type], bool)
        rows = self.trajectories.order[answered[self.trajectories.order]]
        owner = self.trajectories.of_row[rows]
        return rows[np.append(owner[1:] != owner[:-1], True)] if len(rows) else rows


class Term(NamedTuple):
    """A reward term: its parameters and its function."""

    parameters: type[TermParameters]
    value: Callable[[Steps, Any], np.ndarray]
    """(steps, parameters) → float64[rows], before the weight; NaN: the step cannot be scored."""

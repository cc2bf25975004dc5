"""What a reward term is given."""

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
    """What every term has."""

    weight: float = 1.0
    """The term's value is multiplied by it."""
    cap: float | None = Field(None, gt=0)
    """Bound of what the term adds to or takes from one trajectory in all, after the weight; null:
    none. What is paid per call or per step can otherwise be earned without end."""

    @field_validator("*")
    @classmethod
    def _finite(cls, value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must be a finite number")
        return value


@dataclass(frozen=True)
class Steps:
    """The columns that terms read, in table order; lists have one element per row."""

    trajectories: Trajectories
    action_type: Sequence[str]
    action_text: Sequence[str]
    tool_calls: Sequence[str]
    """JSON, see the rollouts schema."""
    tool_results: Sequence[str]
    """JSON, see the rollouts schema."""
    env_reward: np.ndarray
    """float64[rows]; NaN where the environment did not score."""
    answers: Sequence[Sequence[str]]
    """Accepted answers of the row's task."""
    action_tokens: np.ndarray
    """int64[rows]: sampled tokens of the row's action."""
    prompt_tokens: np.ndarray
    """int64[rows]: tokens that the policy saw before it acted."""
    prompts: Sequence[str]
    """What the row's task asks."""
    payloads: Sequence[str]
    """JSON: the row's task's own data."""

    def answering_rows(self) -> np.ndarray:
        """int64: the row of the last answer of each trajectory that has one, once per trajectory.

        Writing an answer in every turn earns it once.
        """
        answered = np.array([kind == "answer" for kind in self.action_type], bool)
        rows = self.trajectories.order[answered[self.trajectories.order]]
        owner = self.trajectories.of_row[rows]
        return rows[np.append(owner[1:] != owner[:-1], True)] if len(rows) else rows


class Term(NamedTuple):
    """A reward term: its parameters and its value."""

    parameters: type[TermParameters]
    value: Callable[[Steps, Any], np.ndarray]
    """float64[rows], before the weight; NaN where it cannot be known (not scored)."""

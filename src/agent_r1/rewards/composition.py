"""The reward of each step: the weighted sum of the configured terms.

A trajectory is scored as a whole or not at all. It is not scored (null, which is not 0) if its
infrastructure failed, or if a configured term could not score one of its steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import Field, SerializeAsAny, field_validator

from agent_r1 import schemas
from agent_r1.mdp import EndReason
from agent_r1.parameters import ParameterError, Parameters
from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.rewards.registry import TERMS, term
from agent_r1.schemas import SchemaError, ragged
from agent_r1.trajectories import Trajectories, find_trajectories

_DEFAULT_TERMS = ("outcome", "format")


class RewardParameters(Parameters):
    """``reward`` in ``conf/``."""

    terms: dict[str, SerializeAsAny[TermParameters]] = Field(
        default_factory=lambda: {name: TERMS[name].parameters() for name in _DEFAULT_TERMS}
    )
    """Parameters of each term by its name; a term that is null is off. By default 1 for a right
    answer and 0.1 for a well-formed one."""

    @field_validator("terms", mode="before")
    @classmethod
    def _read_terms(cls, terms: Any) -> Any:
        if not isinstance(terms, Mapping):
            raise ParameterError("must map names of terms to their parameters")
        return {
            name: term(name).parameters.read(values, f"reward.terms.{name}")
            for name, values in terms.items()
            if values is not None
        }


def rewards_table(
    rollouts: pd.DataFrame, tasks: pd.DataFrame, parameters: RewardParameters
) -> pd.DataFrame:
    """The ``rewards`` table of conformed ``rollouts``, in their row order.

    Raises:
        SchemaError: a task is not in ``tasks``, or a reward is not a finite number.
    """
    trajectories = find_trajectories(rollouts, "rollouts")
    steps = _steps(rollouts, tasks, trajectories)
    plain = {name: TERMS[name].value(steps, chosen) for name, chosen in parameters.terms.items()}
    values = {name: parameters.terms[name].weight * plain[name] for name in plain}
    reward = sum(values.values(), start=np.zeros(len(rollouts)))
    reason = rollouts["end_reason"].to_numpy(dtype=object, na_value=None)
    missing = np.isnan(reward) | (reason == EndReason.INFRASTRUCTURE.value)
    of_row = trajectories.of_row
    scored = (np.bincount(of_row, missing, len(trajectories.ids)) == 0)[of_row]
    reward = np.where(scored, reward, 0.0)
    total = np.bincount(of_row, reward, len(trajectories.ids))[of_row]
    return schemas.build(
        {
            "trajectory_id": rollouts["trajectory_id"].array.__arrow_array__(),
            "step_index": rollouts["step_index"].array.__arrow_array__(),
            "reward": _nullable(reward, scored),
            "components": _components(values, scored),
            "trajectory_reward": _nullable(total, scored),
            "correct": _correct(plain.get("outcome"), trajectories, scored),
        },
        "rewards",
    )


def _steps(rollouts: pd.DataFrame, tasks: pd.DataFrame, trajectories: Trajectories) -> Steps:
    answers = dict(zip(tasks["task_id"].tolist(), tasks["answers"].tolist(), strict=True))
    wanted = rollouts["task_id"].tolist()
    for row, task in enumerate(wanted):
        if task not in answers:
            raise SchemaError(f"table 'rollouts', row {row}: task '{task}' is not in 'tasks'")
    column = rollouts["env_reward"].array.__arrow_array__()
    env_reward = column.to_numpy(zero_copy_only=False).astype(np.float64)
    known = column.is_valid().to_numpy(zero_copy_only=False)
    if not np.isfinite(env_reward[known]).all():
        row = np.flatnonzero(known & ~np.isfinite(env_reward))[0]
        raise SchemaError(f"table 'rollouts', row {row}: env_reward is {env_reward[row]}")
    return Steps(
        trajectories=trajectories,
        action_type=rollouts["action_type"].tolist(),
        action_text=rollouts["action_text"].tolist(),
        tool_results=rollouts["tool_results"].tolist(),
        env_reward=env_reward,
        answers=[answers[task] for task in wanted],
        action_tokens=ragged(rollouts["action_token_ids"]).lengths,
    )


def _nullable(values: np.ndarray, scored: np.ndarray) -> pa.Array:
    return pa.array(values, type=pa.float32(), mask=~scored)


def _components(values: Mapping[str, np.ndarray], scored: np.ndarray) -> list[str]:
    """JSON of each row's weighted terms; an unscored row has none."""
    names = sorted(values)
    columns = [values[name].tolist() for name in names]
    return [
        json.dumps(dict(zip(names, row, strict=True))) if known else "{}"
        for known, *row in zip(scored.tolist(), *columns, strict=True)
    ]


def _correct(
    outcome: np.ndarray | None, trajectories: Trajectories, scored: np.ndarray
) -> pa.Array:
    """Whether the outcome's metric is 1, on each row; null without an outcome term or score."""
    if outcome is None:
        return pa.nulls(len(scored), pa.bool_())
    of_row = trajectories.of_row
    solved = np.bincount(of_row, outcome == 1, len(trajectories.ids)) > 0
    return pa.array(solved[of_row], mask=~scored)

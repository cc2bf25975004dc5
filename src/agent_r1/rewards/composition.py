"""The reward of each step: the weighted sum of the configured terms.

1. A row gets the terms of its environment (``reward.environments``), else ``reward.terms``. So each
   environment of a mixture can have its own rewards.
2. A term's value is multiplied by its weight. A cap bounds the running sum over the trajectory, and
   a step gets the change of that bounded sum.
3. A trajectory is scored as a whole or not at all. It is not scored (null, not 0) if its
   infrastructure failed, or if a term could not score one of its steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pydantic import BeforeValidator, Field, SerializeAsAny

from agent_r1 import tables
from agent_r1.mdp import EndReason
from agent_r1.parameters import ParameterError, Parameters
from agent_r1.rewards.base import Steps, TermParameters
from agent_r1.rewards.outcome import OutcomeParameters
from agent_r1.rewards.registry import TERMS, term
from agent_r1.schemas import SchemaError
from agent_r1.tables.arrays import ragged
from agent_r1.tables.trajectories import Trajectories, find_trajectories

_DEFAULT_TERMS = ("outcome", "format")


def _read_terms(terms: Any) -> Any:
    if not isinstance(terms, Mapping):
        raise ParameterError("must map names of terms to their parameters")
    return {
        name: term(name).parameters.read(values, name)
        for name, values in terms.items()
        if values is not None
    }


Terms = Annotated[dict[str, SerializeAsAny[TermParameters]], BeforeValidator(_read_terms)]
"""Parameters of each term by its name; a term that is null is off."""


class EnvironmentRewards(Parameters):
    """``reward.environments.NAME`` in ``conf/``."""

    terms: Terms
    """These replace ``reward.terms``."""


class RewardParameters(Parameters):
    """``reward`` in ``conf/``."""

    terms: Terms = Field(
        default_factory=lambda: {name: TERMS[name].parameters() for name in _DEFAULT_TERMS}
    )
    """The default gives 1 for a right answer and 0.1 for a well-formed one."""
    environments: dict[str, EnvironmentRewards] = Field(default_factory=dict)
    """Other terms for these environments, by their name in column ``environment`` of the tasks."""

    def outcome_metric(self, environment: str) -> str | None:
        """The metric of an environment's ``outcome`` term; None if it has no such term."""
        own = self.environments.get(environment)
        outcome = (own.terms if own else self.terms).get("outcome")
        return outcome.metric if isinstance(outcome, OutcomeParameters) else None


def rewards_table(
    rollouts: pd.DataFrame, tasks: pd.DataFrame, parameters: RewardParameters
) -> pd.DataFrame:
    """The ``rewards`` table of conformed ``rollouts``, in their row order.

    Raises:
        SchemaError: a task is not in ``tasks``, or a reward is not a finite number.
    """
    trajectories = find_trajectories(rollouts, "rollouts")
    steps = _steps(rollouts, tasks, trajectories)
    reward, outcome = np.zeros(len(rollouts)), np.full(len(rollouts), np.nan)
    components = np.full(len(rollouts), "{}", object)
    for terms, rows in _rows_by_terms(rollouts, parameters):
        # Computed for all steps: a term that refuses a row names it by its position in the table.
        plain = {name: term(name).value(steps, chosen)[rows] for name, chosen in terms.items()}
        values = {
            name: _capped(terms[name].weight * plain[name], rows, terms[name].cap, trajectories)
            for name in plain
        }
        reward[rows] = sum(values.values(), start=np.zeros(len(rows)))
        components[rows] = _components(values, len(rows))
        outcome[rows] = plain.get("outcome", np.nan)
    failed = rollouts["end_reason"] == EndReason.INFRASTRUCTURE.value
    missing = np.isnan(reward) | failed.to_numpy(bool, na_value=False)
    of_row = trajectories.of_row
    scored = (np.bincount(of_row, missing, len(trajectories.ids)) == 0)[of_row]
    reward = np.where(scored, reward, 0.0)
    total = np.bincount(of_row, reward, len(trajectories.ids))[of_row]
    return tables.build(
        {
            "trajectory_id": rollouts["trajectory_id"].array.__arrow_array__(),
            "step_index": rollouts["step_index"].array.__arrow_array__(),
            "reward": _nullable(reward, scored),
            "components": np.where(scored, components, "{}").tolist(),
            "trajectory_reward": _nullable(total, scored),
            "correct": _correct(outcome, trajectories, scored),
        },
        "rewards",
    )


def _rows_by_terms(
    rollouts: pd.DataFrame, parameters: RewardParameters
) -> Iterator[tuple[Terms, np.ndarray]]:
    """Terms and their rows (int64): each environment with its own terms, then all other rows."""
    environments = rollouts["environment"].to_numpy(dtype=object)
    others = np.ones(len(rollouts), bool)
    for name, own in parameters.environments.items():
        here = environments == name
        others &= ~here
        if here.any():
            yield own.terms, np.flatnonzero(here)
    if others.any():
        yield parameters.terms, np.flatnonzero(others)


def _capped(
    values: np.ndarray, rows: np.ndarray, cap: float | None, trajectories: Trajectories
) -> np.ndarray:
    """``values`` (of ``rows``), with each trajectory's running sum bounded to [-cap, cap]."""
    if cap is None:
        return values
    every = np.zeros(len(trajectories.order))
    every[rows] = values
    capped = np.zeros_like(every)
    for begin, end in zip(trajectories.offsets[:-1], trajectories.offsets[1:], strict=True):
        own = trajectories.order[begin:end]
        capped[own] = np.diff(np.clip(np.cumsum(every[own]), -cap, cap), prepend=0.0)
    return capped[rows]


def _steps(rollouts: pd.DataFrame, tasks: pd.DataFrame, trajectories: Trajectories) -> Steps:
    answers = dict(zip(tasks["task_id"].tolist(), tasks["answers"].tolist(), strict=True))
    prompts = dict(zip(tasks["task_id"].tolist(), tasks["prompt"].tolist(), strict=True))
    payloads = dict(zip(tasks["task_id"].tolist(), tasks["payload"].tolist(), strict=True))
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
        tool_calls=rollouts["tool_calls"].tolist(),
        tool_results=rollouts["tool_results"].tolist(),
        env_reward=env_reward,
        answers=[answers[task] for task in wanted],
        action_tokens=ragged(rollouts["action_token_ids"]).lengths,
        prompt_tokens=rollouts["prompt_tokens"].to_numpy(dtype=np.int64),
        prompts=[prompts[task] for task in wanted],
        payloads=[payloads[task] for task in wanted],
    )


def _nullable(values: np.ndarray, scored: np.ndarray) -> pa.Array:
    return pa.array(values, type=pa.float32(), mask=~scored)


def _components(values: Mapping[str, np.ndarray], rows: int) -> list[str]:
    """Each row's weighted terms as JSON."""
    names = sorted(values)
    columns = [values[name].tolist() for name in names]
    if not names:
        return ["{}"] * rows
    return [json.dumps(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _correct(outcome: np.ndarray, trajectories: Trajectories, scored: np.ndarray) -> pa.Array:
    """On each row, whether the trajectory's outcome metric is 1; null if the trajectory is not
    scored, or if ``outcome`` is NaN because the row has no such term."""
    of_row = trajectories.of_row
    solved = np.bincount(of_row, outcome == 1, len(trajectories.ids)) > 0
    return pa.array(solved[of_row], mask=~scored | np.isnan(outcome))

"""Replay: execute recorded actions again and compare all their consequences with the record.

1. Action tokens come from the record (`RecordedEngine`). The loop that made the record computes
   everything else again: prompts, parsing, tools, the environment's rewards, limits, ends.
2. The list of trajectories comes from the requests of the stage, not from the record. So a replay
   also finds removed or invented trajectories and changed temperatures or seeds.
3. Each column of ``rollouts`` is compared, value by value. So environments must be deterministic.
4. An infrastructure failure cannot be repeated. Its row counts as skipped, but it must equal the
   row that the loop writes for such a failure at this step, and no step may follow it.

A replay does not find:

* a wrong log-prob (`compute_logprobs` scores tokens again);
* tokens that another policy sampled;
* a record whose actions *and* consequences were replaced by those of another real episode of the
  same task;
* a consistently invented failure (only the number of skipped steps shows it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1 import tables
from agent_r1.chat import ChatFormat, ChatParameters, load_tokenizer, make_format
from agent_r1.engines.recorded import RecordedEngine
from agent_r1.environments import EnvironmentParameters
from agent_r1.mdp import ActionType, EndReason
from agent_r1.rollout.collector import MakeEnvironment, OnProgress, collect
from agent_r1.rollout.parameters import RolloutParameters
from agent_r1.rollout.requests import TrajectoryRequest
from agent_r1.rollout.run import environment_factory
from agent_r1.rollout.trajectory import Trajectory
from agent_r1.tables.differences import Difference, compare_tables

_Row = dict[str, Any]

_FAILED: _Row = {
    "observation": None,
    "env_reward": None,
    "terminated": False,
    "truncated": True,
    "end_reason": EndReason.INFRASTRUCTURE.value,
    "final_token_ids": [],
}
"""The values that the loop writes if the environment fails after an action."""
_REPORTED = ("tool_results", "info")
"""Columns of a failed step whose values only the failure itself determines."""


@dataclass(frozen=True, eq=False)
class Replay:
    """The result of a replay."""

    compared: int
    """Number of steps in the record or the replay, without skipped ones."""
    matching: int
    """Number of compared steps that are equal in every column."""
    skipped: int
    """Number of recorded steps at which the infrastructure failed. Neither number above includes
    them, but they may have differences."""
    differences: list[Difference]
    """Sorted by trajectory, step and column; empty if the replay equals the record."""
    rollouts: pd.DataFrame
    """The replayed table: what should have been recorded. Scoring it gives the correct rewards."""


def replay_trajectories(
    rollouts: pd.DataFrame,
    requests: Sequence[TrajectoryRequest],
    documents: pd.DataFrame,
    tokenizer: Path | str,
    rollout: RolloutParameters | Mapping[str, Any],
    environment: EnvironmentParameters | Mapping[str, Any],
    chat: ChatParameters | Mapping[str, Any],
    policy_version: str | None = None,
    on_progress: OnProgress | None = None,
) -> Replay:
    """Execute recorded rollouts again.

    Args:
        rollouts: the recorded table.
        requests: the stage's requests, made from the stage's inputs.
        documents: the corpus of the environment's tools.
        tokenizer: a Hugging Face folder with the policy's tokenizer; weights are not needed.
        rollout, environment, chat: the stage's parameter groups with these names.
        policy_version: sha256 of the policy that acted. None for the version in most rows; then
            only rows that disagree with it are found.
        on_progress: called with (ended trajectories, all trajectories, tokens replayed).

    Raises:
        SchemaError: ``rollouts`` or ``documents`` does not fit its schema.
        ParameterError: an environment, an option or the tokenizer does not exist.
        ValueError: two requests have the same trajectory id.
    """
    return replay_with(
        make_format(ChatParameters.read(chat, "chat"), load_tokenizer(tokenizer)),
        environment_factory(EnvironmentParameters.read(environment, "environment"), documents),
        rollouts,
        requests,
        RolloutParameters.read(rollout, "rollout"),
        policy_version,
        on_progress,
    )


def replay_with(
    chat: ChatFormat,
    make_environment: MakeEnvironment,
    rollouts: pd.DataFrame,
    requests: Sequence[TrajectoryRequest],
    parameters: RolloutParameters,
    policy_version: str | None = None,
    on_progress: OnProgress | None = None,
) -> Replay:
    """`replay_trajectories` with an existing chat format and environment factory."""
    recorded = tables.conform(rollouts, "rollouts")
    engine = RecordedEngine(recorded, policy_version)
    failed = [row for row in _rows(recorded) if row["end_reason"] == EndReason.INFRASTRUCTURE]
    failures = _first_of_each(failed)
    played: list[TrajectoryRequest] = []
    unplayed: list[TrajectoryRequest] = []
    for request in requests:
        never_began = _never_began(failures.get(request.trajectory_id))
        (unplayed if never_began else played).append(request)
    again, _ = collect(engine, chat, make_environment, played, parameters, on_progress)
    rows = [expected for row in _rows(again) for expected in _expected(row, failures)]
    for request in unplayed:
        row = _failed_start(request, parameters, engine.weight_version)
        rows.append(_as_reported(row, failures[request.trajectory_id]))
    rows.sort(key=_key)
    table = tables.from_rows(rows, "rollouts")
    skipped = {_key(row) for row in failed}
    return _summary(recorded, table, skipped)


def _summary(recorded: pd.DataFrame, table: pd.DataFrame, skipped: set[tuple[str, int]]) -> Replay:
    differences = compare_tables(recorded, table, "rollouts")
    steps = {_key(row) for frame in (recorded, table) for row in _rows(frame)} - skipped
    wrong = {(one.trajectory_id, one.step_index) for one in differences}
    return Replay(len(steps), len(steps - wrong), len(skipped), differences, table)


def _rows(frame: pd.DataFrame) -> list[_Row]:
    return tables.to_arrow(frame, "rollouts").to_pylist()


def _key(row: _Row) -> tuple[str, int]:
    return row["trajectory_id"], row["step_index"]


def _first_of_each(rows: Sequence[_Row]) -> dict[str, _Row]:
    """Trajectory id → the earliest of its rows."""
    first: dict[str, _Row] = {}
    for row in sorted(rows, key=_key):
        first.setdefault(row["trajectory_id"], row)
    return first


def _never_began(failure: _Row | None) -> bool:
    return (
        failure is not None
        and failure["step_index"] == 0
        and failure["action_type"] == ActionType.NONE
    )


def _expected(row: _Row, failures: Mapping[str, _Row]) -> list[_Row]:
    """A replayed row as it is if the environment fails at the recorded failure; [] after it."""
    failure = failures.get(row["trajectory_id"])
    if failure is None or row["step_index"] < failure["step_index"]:
        return [row]
    if row["step_index"] > failure["step_index"]:
        return []
    if row["action_type"] == ActionType.CUT:  # it never reached the environment
        return [row]
    return [_as_reported(row | _FAILED, failure)]


def _failed_start(request: TrajectoryRequest, parameters: RolloutParameters, version: str) -> _Row:
    """The row of a trajectory whose environment failed to start."""
    trajectory = Trajectory(request, parameters, version)
    trajectory.fail("")
    return trajectory.rows[0]


def _as_reported(row: _Row, failure: _Row) -> _Row:
    return row | {column: failure[column] for column in _REPORTED}

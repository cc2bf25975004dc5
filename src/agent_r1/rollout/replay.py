"""Replay: the recorded actions are executed again, and everything that follows is compared.

1. Tokens come from the record (`RecordedEngine`); all else is done anew by the loop that made the
   record: prompts, parsing, tools, rewards of the environment, limits, ends.
2. What was attempted does not come from the record but from the requests of the stage, so that a
   trajectory that was removed or invented, or another temperature or seed, is found too.
3. Each column of ``rollouts`` is compared, value by value: environments must be deterministic.
4. A failure of the infrastructure cannot be repeated. Its row is counted as skipped, but must be
   what the loop writes for such a failure at this place, and no step may follow it.

Not found: a log-prob that is wrong (`compute_logprobs` is what scores tokens anew), tokens that
another policy sampled, a record whose actions *and* consequences were exchanged for those of
another real episode of the same task, and a failure that was invented with all that belongs to it
(it shows in the number of skipped steps alone).
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

_FAILED: Mapping[str, Any] = {
    "observation": None,
    "env_reward": None,
    "terminated": False,
    "truncated": True,
    "end_reason": EndReason.INFRASTRUCTURE.value,
    "final_token_ids": [],
}
"""What the loop writes where the environment fails after an action."""
_REPORTED = ("tool_results", "info")
"""Columns of a failed step that only the failure itself could tell."""


@dataclass(frozen=True, eq=False)
class Replay:
    """What a replay found."""

    compared: int
    """Steps that the record or the replay has, without those that were skipped."""
    matching: int
    """Of those, how many are the same in every column."""
    skipped: int
    """Recorded steps at which the infrastructure failed. They are in neither number above, but may
    have differences."""
    differences: list[Difference]
    """By trajectory, step and column; empty if the record is what happens."""
    rollouts: pd.DataFrame
    """What should have been recorded; scoring it gives the rewards that should have been."""


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
        requests: what the stage attempted, made from its own inputs.
        documents: the corpus that the environment's tools worked on.
        tokenizer: a Hugging Face folder with the policy's tokenizer; weights are not needed.
        rollout, environment, chat: the stage's parameter groups of these names.
        policy_version: sha256 of the policy that acted; None for what most rows say, so that only
            rows that disagree are found.
        on_progress: called with (ended trajectories, all trajectories, tokens replayed).

    Raises:
        SchemaError: ``rollouts`` or ``documents`` does not fit its schema.
        ParameterError: an environment, option or tokenizer that does not exist.
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
    """`replay_trajectories` with a chat format and environments that exist already."""
    recorded = tables.conform(rollouts, "rollouts")
    engine = RecordedEngine(recorded, policy_version)
    failed = [row for row in _rows(recorded) if row["end_reason"] == EndReason.INFRASTRUCTURE]
    failures = _first_of_each(failed)
    played, unplayed = [], []
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
    """The earliest of these rows of each trajectory."""
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
    """A replayed row, as it is if the environment fails where it is recorded to have failed."""
    failure = failures.get(row["trajectory_id"])
    if failure is None or row["step_index"] < failure["step_index"]:
        return [row]
    if row["step_index"] > failure["step_index"]:
        return []
    if row["action_type"] == ActionType.CUT:  # no environment got to see it, so none failed
        return [row]
    return [_as_reported(row | _FAILED, failure)]


def _failed_start(request: TrajectoryRequest, parameters: RolloutParameters, version: str) -> _Row:
    """The row of a trajectory whose environment did not start."""
    trajectory = Trajectory(request, parameters, version)
    trajectory.fail("")
    return trajectory.rows[0]


def _as_reported(row: _Row, failure: _Row) -> _Row:
    return row | {column: failure[column] for column in _REPORTED}

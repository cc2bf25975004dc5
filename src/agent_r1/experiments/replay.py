"""Replay committed trajectories: execute their actions again in the environment.

The tokens are the recorded ones. Everything else is computed again from the inputs that the
manifest names: prompts, parsing, tool results, observations, the environment's rewards, ends
(`agent_r1.rollout.replay`), and the rewards (`score_rewards`). Weights are not needed, so a pruned
policy can be replayed.

With dynamic sampling the kept groups are replayed, and the rounds are repeated: the tasks that each
round draws, the rewards of the kept groups, and the decisions that follow from them. A dropped
group's rewards are taken from the record, because its trajectories are not stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1 import tables
from agent_r1.lineage import Experiment, LineageError, ManifestStore
from agent_r1.pipelines.evaluation.nodes import evaluated_tasks, evaluation_requests
from agent_r1.pipelines.evaluation.parameters import EvaluationParameters
from agent_r1.pipelines.reward.nodes import score_rewards
from agent_r1.pipelines.rollout.dynamic_sampling import group_outcomes, sampled_again
from agent_r1.pipelines.rollout.nodes import rollout_requests, task_order
from agent_r1.rollout import RolloutParameters, TrajectoryRequest, replay_trajectories
from agent_r1.rollout.collector import OnProgress
from agent_r1.tables.differences import Difference, compare_tables

STAGES = {
    "generate_rollouts": ("rollouts", "rewards"),
    "validate_policy": ("validation_rollouts", "validation_rewards"),
    "evaluate_policy": ("evaluation_rollouts", "evaluation_rewards"),
}
"""Node → its table of rollouts and its table of rewards."""

GROUPS = "sampled_groups"
"""The table of the groups that dynamic sampling played; only ``generate_rollouts`` has it."""


@dataclass(frozen=True, eq=False)
class Replayed:
    """What a replay found."""

    rollouts: str
    """The table that was replayed."""
    version: str | None
    compared: int
    """Number of steps."""
    matching: int
    """Number of steps that are equal in every column, rewards included."""
    skipped: int
    """Number of steps with an infrastructure failure, which cannot be repeated."""
    rewards: str | None
    """The table of rewards that was compared; None if it does not exist yet."""
    groups: str | None
    """The table of sampled groups that was compared; None without dynamic sampling."""
    differences: list[Difference]


def replay(
    experiment: Experiment,
    iteration: str,
    stage: str = "generate_rollouts",
    on_progress: OnProgress | None = None,
) -> Replayed:
    """Execute the actions of an iteration's trajectories again.

    Args:
        experiment: whose trajectories.
        iteration: such as ``iter_00003``.
        stage: whose trajectories: a key of `STAGES`.
        on_progress: called with (ended trajectories, all trajectories, tokens).

    Raises:
        LineageError: the stage is not committed, or one of its inputs is gone.
    """
    return _Replay(experiment, iteration, stage).run(on_progress)


class _Replay:
    def __init__(self, experiment: Experiment, iteration: str, stage: str) -> None:
        node = f"{iteration}.{stage}"
        manifest = experiment.manifests.newest(node)
        if manifest is None:
            played = _played(experiment.manifests, stage)
            raise LineageError(f"{node} is not committed; committed are {played}")
        self._experiment = experiment
        self._iteration = iteration
        self._stage = stage
        self._manifest = manifest
        self._seed = self._parameter("seed")
        self._rollout = RolloutParameters.read(self._parameter("rollout"), "rollout")
        self._tasks = self._input("tasks")
        self._groups = self._sampled_groups()

    def run(self, on_progress: OnProgress | None) -> Replayed:
        rollouts_name, rewards_name = (f"{self._iteration}.{name}" for name in STAGES[self._stage])
        record = self._manifest.output(rollouts_name)
        assert record is not None
        policy = next(each for each in self._manifest.inputs if each.dataset.endswith(".policy"))
        result = replay_trajectories(
            self._experiment.table(record),
            self._requests(),
            self._input("documents"),
            self._tokenizer(policy.path),
            self._parameter("rollout"),
            self._parameter("environment"),
            self._parameter("chat"),
            policy.sha256,
            on_progress,
        )
        differences = list(result.differences)
        rewards = self._rewards(rewards_name)
        if rewards is not None:
            table, parameters = rewards
            scored = score_rewards(result.rollouts, self._tasks, parameters)
            differences += compare_tables(table, scored, "rewards")
        wrong = {(each.trajectory_id, each.step_index) for each in differences}
        before = {(each.trajectory_id, each.step_index) for each in result.differences}
        if self._groups is not None:
            differences += self._compare_groups(self._groups, result.rollouts)
        return Replayed(
            rollouts_name,
            record.version,
            result.compared,
            result.matching - len(wrong - before),
            result.skipped,
            rewards_name if rewards is not None else None,
            f"{self._iteration}.{GROUPS}" if self._groups is not None else None,
            differences,
        )

    def _requests(self) -> list[TrajectoryRequest]:
        rollout, seed = self._rollout, self._seed
        if self._stage == "generate_rollouts":
            return rollout_requests(self._tasks, rollout, seed, self._iteration, self._groups)
        evaluation = EvaluationParameters.read(self._parameter("evaluation"), "evaluation")
        if self._stage == "validate_policy":
            evaluation = evaluation.model_copy(update={"splits": ("validation",)})
        chosen = evaluated_tasks(tables.conform(self._tasks, "tasks"), evaluation)
        return evaluation_requests(chosen, evaluation, rollout, seed, self._iteration)

    def _sampled_groups(self) -> pd.DataFrame | None:
        """What dynamic sampling recorded; None if it is off, or the stage does not have it."""
        record = self._manifest.output(f"{self._iteration}.{GROUPS}")
        if record is None or not self._rollout.dynamic_sampling.enabled:
            return None
        return self._experiment.table(record)

    def _compare_groups(self, groups: pd.DataFrame, replayed: pd.DataFrame) -> list[Difference]:
        """``replayed``: the rollouts that dynamic sampling keeps."""
        order = task_order(self._tasks, self._rollout, self._seed, self._iteration)
        rewards = score_rewards(replayed, self._tasks, self._parameter("reward"))
        played = group_outcomes(replayed, rewards)
        again = sampled_again(groups, order, self._rollout, played, self._iteration)
        return compare_tables(groups, again, GROUPS)

    def _rewards(self, name: str) -> tuple[pd.DataFrame, Any] | None:
        """The table of rewards, and the parameters that made it."""
        committed = self._experiment.current(name)
        if committed is None:
            return None
        manifest = self._experiment.manifests.read(committed.manifest)
        return self._experiment.table(committed.record), manifest.parameters["params:reward"]

    def _tokenizer(self, policy: str) -> Path:
        """The policy's folder; if it was pruned, one that all policies come from."""
        paths = [policy]
        for name in ("iter_00000.policy", "base.policy"):
            committed = self._experiment.current(name)
            paths += [committed.record.path] if committed else []
        for path in paths:
            if (folder := self._experiment.project / path).is_dir():
                return folder
        raise LineageError(f"the tokenizer is gone: it was in {', '.join(paths)}")

    def _input(self, name: str) -> pd.DataFrame:
        record = next(each for each in self._manifest.inputs if each.dataset == name)
        return self._experiment.table(record)

    def _parameter(self, name: str) -> Any:
        return self._manifest.parameters[f"params:{name}"]


def _played(store: ManifestStore, stage: str) -> str:
    names = [name for name in store.iterations() if store.current(f"{name}.{stage}") is not None]
    return f"{names[0]} … {names[-1]}" if names else "none"

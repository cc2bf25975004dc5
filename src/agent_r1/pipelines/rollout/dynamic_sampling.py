"""DAPO's dynamic sampling: replace groups without a learning signal by groups of other tasks.

Q. Yu et al., "DAPO" (2025), https://arxiv.org/abs/2503.14476, sec. 3.2.

1. Round 1 plays the iteration's batch, the same as without dynamic sampling.
2. Its trajectories are scored as by ``score_rewards``. A group has a *signal* if at least two of
   its trajectories are scored and their rewards differ; unscored trajectories are ignored.
3. Groups without a signal are dropped. The next round plays one further task for each missing group
   (`drawing_order`), so a group with a signal is never dropped.
4. Sampling ends when enough groups have a signal, after ``max_rounds``, or when all training tasks
   have been played. In the last two cases it logs a warning and trains on the groups it has.
5. If no group has a signal, the batch of round 1 is kept: the iteration is the same as without
   dynamic sampling, with advantages of 0.

Every played group is a row of ``sampled_groups``. The rounds depend only on the rewards, so a
replay repeats them (`sampled_again`) without the dropped trajectories.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from agent_r1 import tables
from agent_r1.advantages.groups import group_statistics
from agent_r1.rollout import RolloutParameters

logger = logging.getLogger(__name__)


class GroupOutcome(NamedTuple):
    """The rewards of a group, by ``sample_index``, and its tokens."""

    rewards: tuple[float | None, ...]
    """None means not scored."""
    completion_tokens: int


Play = Callable[[pd.DataFrame], Sequence[GroupOutcome]]
"""The tasks of a round → the outcome of each task's group."""


@dataclass(frozen=True, slots=True)
class SampledGroup:
    """A played group."""

    task_id: str
    round: int
    outcome: GroupOutcome

    @property
    def known(self) -> list[float]:
        """The rewards of its scored trajectories."""
        return [reward for reward in self.outcome.rewards if reward is not None]

    @property
    def reason(self) -> Literal["no_variance", "too_few_scored"] | None:
        """Why the group has no signal; None if it has one."""
        if len(self.known) < 2:
            return "too_few_scored"
        statistics = group_statistics(np.array(self.known), np.zeros(len(self.known), np.int64))
        return "no_variance" if statistics.zero_variance[0] else None


def sample_groups(
    order: pd.DataFrame, rollout: RolloutParameters, play: Play
) -> list[SampledGroup]:
    """Play round after round; see the module.

    Args:
        order: tasks in drawing order.
        rollout: the number of groups, and the largest number of rounds.
        play: plays the tasks of a round; called once per round.

    Returns:
        all played groups, in the order of play.
    """
    groups: list[SampledGroup] = []
    for number in range(1, rollout.dynamic_sampling.max_rounds + 1):
        missing = rollout.tasks_per_iteration - len(with_signal(groups))
        tasks = order.iloc[len(groups) : len(groups) + missing]
        if tasks.empty:
            break
        names = tasks["task_id"].tolist()
        played = zip(names, play(tasks), strict=True)
        groups += [SampledGroup(name, number, outcome) for name, outcome in played]
    return groups


def with_signal(groups: Sequence[SampledGroup]) -> list[SampledGroup]:
    """The groups with a learning signal."""
    return [group for group in groups if group.reason is None]


def trained_groups(groups: Sequence[SampledGroup]) -> list[SampledGroup]:
    """The groups to train on: those with a signal, or those of round 1 if there are none."""
    return with_signal(groups) or [group for group in groups if group.round == 1]


def groups_table(groups: Sequence[SampledGroup], iteration: str) -> pd.DataFrame:
    """The ``sampled_groups`` table: one row per played group, in the order of play."""
    trained = {group.task_id for group in trained_groups(groups)}
    rows = [
        {
            "group_id": f"{iteration}/{group.task_id}",
            "task_id": group.task_id,
            "round": group.round,
            "kept": group.task_id in trained,
            "reason": group.reason,
            "rewards": group.outcome.rewards,
            "scored": len(group.known),
            "mean_reward": float(np.mean(group.known)) if group.known else None,
            "completion_tokens": group.outcome.completion_tokens,
        }
        for group in groups
    ]
    return tables.from_rows(rows, "sampled_groups")


def group_outcomes(rollouts: pd.DataFrame, rewards: pd.DataFrame) -> dict[str, GroupOutcome]:
    """Task → outcome of its group; ``rewards`` has the same rows as ``rollouts``."""
    steps = pd.DataFrame(
        {
            "task": rollouts["task_id"].tolist(),
            "sample": rollouts["sample_index"].tolist(),
            "reward": rewards["trajectory_reward"].to_numpy(np.float64, na_value=np.nan),
            "tokens": rollouts["completion_tokens"].tolist(),
        }
    )
    found = {}
    for task, rows in steps.groupby("task", sort=False):
        known = rows.drop_duplicates("sample").sort_values("sample")["reward"].tolist()
        scored = tuple(None if np.isnan(reward) else reward for reward in known)
        found[str(task)] = GroupOutcome(scored, int(rows["tokens"].sum()))
    return found


def sampled_again(
    recorded: pd.DataFrame,
    order: pd.DataFrame,
    rollout: RolloutParameters,
    played: dict[str, GroupOutcome],
    iteration: str,
) -> pd.DataFrame:
    """The ``sampled_groups`` table that should have been recorded.

    Args:
        recorded: the recorded table, the only source for the outcomes of dropped groups.
        order, rollout: see `sample_groups`.
        played: task → outcome of its group, for groups that were played again.
        iteration: such as ``iter_00003``.
    """
    remembered = {
        row["task_id"]: GroupOutcome(tuple(row["rewards"]), row["completion_tokens"])
        for row in tables.to_arrow(recorded, "sampled_groups").to_pylist()
    }
    known = remembered | played
    nothing = GroupOutcome((), 0)

    def play(tasks: pd.DataFrame) -> list[GroupOutcome]:
        return [known.get(task, nothing) for task in tasks["task_id"]]

    return groups_table(sample_groups(order, rollout, play), iteration)


def warn_if_short(
    groups: Sequence[SampledGroup], rollout: RolloutParameters, iteration: str, tasks: int
) -> None:
    """Log a warning if too few groups have a signal: why, and what the iteration trains on.

    Args:
        groups: all played groups.
        rollout, iteration: the parameters and the name of the iteration.
        tasks: number of training tasks.
    """
    found, wanted = len(with_signal(groups)), rollout.tasks_per_iteration
    if found == wanted:
        return
    trained = "it trains on these" if found else "it keeps its first batch, which teaches nothing"
    if len(groups) == tasks:
        remedy = "all training tasks were played: lower rollout.tasks_per_iteration"
    else:
        remedy = "more rounds are allowed by rollout.dynamic_sampling.max_rounds"
    logger.warning(
        "%s: dynamic sampling found %d of %d groups whose rewards differ, in %d rounds and %d "
        "groups; %s. See its table sampled_groups; %s",
        *(iteration, found, wanted, groups[-1].round, len(groups), trained, remedy),
    )

"""DAPO's dynamic sampling: groups that teach nothing are replaced by groups of further tasks.

Q. Yu et al., "DAPO" (2025), sec. 3.2.

1. Round 1 plays the iteration's own batch, as it is played without dynamic sampling.
2. Its trajectories are scored as ``score_rewards`` does it. A group has a *signal* if at least two
   of them are scored and the rewards differ; what is not scored is no reason to keep or drop.
3. Groups without a signal are dropped. The next round plays as many further tasks as are missing
   (`drawing_order`), so that no group that has a signal is ever thrown away.
4. It ends when all groups that are wanted have a signal, after ``max_rounds``, or when all training
   tasks were played. In the last two cases it says so, and trains on what it has.
5. If no group has a signal, the batch of round 1 is kept: the iteration is what it is without
   dynamic sampling, with advantages of 0.

Every group that was played is a row of ``sampled_groups``. The rounds are a function of the rewards
alone, so a replay goes through them again (`sampled_again`), and needs no trajectory that was
dropped.
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
    """What the trajectories of a group earned, by ``sample_index``."""

    rewards: tuple[float | None, ...]
    """None is not scored."""
    completion_tokens: int


Play = Callable[[pd.DataFrame], Sequence[GroupOutcome]]
"""The tasks of a round → the outcome of each one's group."""


@dataclass(frozen=True, slots=True)
class SampledGroup:
    """A group that was played."""

    task_id: str
    round: int
    outcome: GroupOutcome

    @property
    def known(self) -> list[float]:
        """The rewards of its scored trajectories."""
        return [reward for reward in self.outcome.rewards if reward is not None]

    @property
    def reason(self) -> Literal["no_variance", "too_few_scored"] | None:
        """Why it has no signal; None if it has one."""
        if len(self.known) < 2:
            return "too_few_scored"
        statistics = group_statistics(np.array(self.known), np.zeros(len(self.known), np.int64))
        return "no_variance" if statistics.zero_variance[0] else None


def sample_groups(
    order: pd.DataFrame, rollout: RolloutParameters, play: Play
) -> list[SampledGroup]:
    """Play round after round; see the module.

    Args:
        order: tasks in the order in which they are drawn.
        rollout: how many groups are wanted, and how many rounds there may be.
        play: is asked once per round.

    Returns:
        every group that was played, in that order.
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
    """The groups that there is something to learn from."""
    return [group for group in groups if group.reason is None]


def trained_groups(groups: Sequence[SampledGroup]) -> list[SampledGroup]:
    """The groups that are trained on: those with a signal; if none has one, those of round 1."""
    return with_signal(groups) or [group for group in groups if group.round == 1]


def groups_table(groups: Sequence[SampledGroup], iteration: str) -> pd.DataFrame:
    """The ``sampled_groups`` table, a row per group that was played, in that order."""
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
    """Task → the outcome of its group; ``rewards`` has the rows of ``rollouts`` in their order."""
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
        recorded: what was. Of dropped groups it is the only one that knows their outcomes.
        order, rollout: see `sample_groups`.
        played: task → the outcome of its group, of those that were played again.
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
    """Say that fewer groups than are wanted have a signal, why, and what is trained on.

    Args:
        groups: all that were played.
        rollout, iteration: what they were played for.
        tasks: how many training tasks there are.
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

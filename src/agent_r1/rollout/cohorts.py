"""Group trajectories that start together, and those that share a prompt."""

from __future__ import annotations

from collections.abc import Iterable

from agent_r1.rollout.trajectory import Trajectory


def by_group(trajectories: Iterable[Trajectory], size: int) -> list[list[Trajectory]]:
    """Trajectories of each group, in lists of at most ``size``."""
    groups: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(trajectory.request.group_id, []).append(trajectory)
    return [
        members[first : first + size]
        for members in groups.values()
        for first in range(0, len(members), size)
    ]


def same_prompts(trajectories: Iterable[Trajectory]) -> list[list[Trajectory]]:
    """Trajectories that have the same group and the same prompt, token for token."""
    prompts: dict[tuple[str, tuple[int, ...]], list[Trajectory]] = {}
    for trajectory in trajectories:
        key = (trajectory.request.group_id, tuple(trajectory.pending))
        prompts.setdefault(key, []).append(trajectory)
    return list(prompts.values())

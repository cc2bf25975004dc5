"""Which trajectories start together, and which of them share a prompt."""

from __future__ import annotations

from collections.abc import Iterable

from agent_r1.rollout.trajectory import Trajectory


def by_group(trajectories: Iterable[Trajectory], size: int) -> list[list[Trajectory]]:
    """Trajectories by group, in parts of at most ``size``."""
    groups: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(trajectory.request.group_id, []).append(trajectory)
    return [
        members[first : first + size]
        for members in groups.values()
        for first in range(0, len(members), size)
    ]


def same_prompts(trajectories: Iterable[Trajectory]) -> list[list[Trajectory]]:
    """Members of a group whose prompts are equal, token for token."""
    prompts: dict[tuple[str, tuple[int, ...]], list[Trajectory]] = {}
    for trajectory in trajectories:
        key = (trajectory.request.group_id, tuple(trajectory.pending))
        prompts.setdefault(key, []).append(trajectory)
    return list(prompts.values())

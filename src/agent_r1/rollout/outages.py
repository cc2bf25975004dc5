"""Which tools are down for everyone, and which trajectories met that: a circuit breaker.

1. Every result of every trajectory is noted. A failure that is not the agent's mistake (an
   exception or a timeout, after all attempts or as many as the step had time for) continues the
   tool's *streak*; an answer ends it.
   What the agent did wrong — unknown tool, bad arguments — says nothing about the tool.
2. A streak of ``unavailable_after`` failures, whoever made the calls, means that the tool is down.
   It is not called again in this collection: further calls get the status ``unavailable``.
3. A small collection may have fewer calls than that: at its end, a tool that answered nobody, and
   failed for two trajectories or more, is down as well.
4. Trajectories in the streak, and those that are told ``unavailable``, are *affected*: their
   records end at the step at which they met the outage first, truncated (``infrastructure``) and
   not scored. It would be wrong to give them 0 for what no policy could do.
5. `settle` takes in what was noted, in the order of trajectories, steps and calls. In deterministic
   mode it is called when all live trajectories have finished a step: what is decided then does not
   depend on which tool was faster.

A tool is one of an environment: two environments may each have a ``search``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from agent_r1.mdp import ToolResult, ToolStatus
from agent_r1.tools.runtime import FAILED

logger = logging.getLogger(__name__)


class Met(NamedTuple):
    """Where a trajectory met an outage."""

    step: int
    environment: str
    tool: str
    failure: str
    """For people."""

    @property
    def info(self) -> dict[str, str]:
        """What the trajectory's last row says about it."""
        return {"failure": self.failure, "unavailable_tool": f"{self.environment}.{self.tool}"}


class _Noted(NamedTuple):
    trajectory: str
    step: int
    environment: str
    results: tuple[ToolResult, ...]
    limit: int | None


class Outages:
    """A state machine; it knows no model, no loop and no environment."""

    def __init__(self) -> None:
        self._noted: list[_Noted] = []
        self._streaks: dict[tuple[str, str], list[tuple[str, int]]] = {}
        self._last: dict[tuple[str, str], ToolResult] = {}
        self._answered: set[tuple[str, str]] = set()
        self._down: dict[str, dict[str, str]] = {}
        self._affected: dict[str, Met] = {}

    def unavailable(self, environment: str) -> dict[str, str]:
        """The environment's tools that are down, and why."""
        return self._down.get(environment, {})

    def met_by(self, trajectory: str) -> Met | None:
        """The first outage that affected a trajectory; None for none."""
        return self._affected.get(trajectory)

    def note(
        self,
        trajectory: str,
        step: int,
        environment: str,
        results: Sequence[ToolResult],
        limit: int | None,
    ) -> None:
        """Results of a step; ``limit`` is the environment's ``unavailable_after``."""
        if results:
            self._noted.append(_Noted(trajectory, step, environment, tuple(results), limit))

    def settle(self) -> None:
        """Decide on what was noted since the last time."""
        noted, self._noted = self._noted, []
        for one in sorted(noted, key=lambda one: (one.trajectory, one.step)):
            for result in one.results:
                self._take(one, result)

    def conclude(self) -> None:
        """Decide, at the end of a collection, on tools that failed for everyone who called them."""
        self.settle()
        for tool, streak in list(self._streaks.items()):
            if tool not in self._answered and len({trajectory for trajectory, _ in streak}) > 1:
                self._declare_down(tool)

    def _take(self, one: _Noted, result: ToolResult) -> None:
        tool = (one.environment, result.name)
        down = self.unavailable(one.environment)
        if result.status is ToolStatus.UNAVAILABLE:
            self._affect(one.trajectory, one.step, tool)
        elif result.status not in FAILED:
            if result.status in (ToolStatus.OK, ToolStatus.OVERSIZED):
                self._streaks.pop(tool, None)
                self._answered.add(tool)
        elif result.name in down:  # made before the tool was known to be down
            self._affect(one.trajectory, one.step, tool)
        elif one.limit is not None:
            streak = self._streaks.setdefault(tool, [])
            streak.append((one.trajectory, one.step))
            self._last[tool] = result
            if len(streak) >= one.limit:
                self._declare_down(tool)

    def _declare_down(self, tool: tuple[str, str]) -> None:
        environment, name = tool
        streak = self._streaks.pop(tool)
        why = f"the tool '{name}' is down: {len(streak)} calls in a row failed, the last with: "
        why += self._last[tool].content
        self._down.setdefault(environment, {})[name] = why
        logger.warning(
            "%s (environment '%s'). It is not called again in this collection, and trajectories "
            "that met this are not scored",
            *(why, environment),
        )
        for trajectory, step in streak:
            self._affect(trajectory, step, tool)

    def _affect(self, trajectory: str, step: int, tool: tuple[str, str]) -> None:
        environment, name = tool
        known = self._affected.get(trajectory)
        if known is None or step < known.step:
            failure = self._down[environment][name]
            self._affected[trajectory] = Met(step, environment, name, failure)

"""A circuit breaker: find tools that are down for all trajectories, and who met the outage.

1. Every tool result of every trajectory is noted. A failure that is not the agent's mistake (an
   exception or a timeout, after all attempts or as many as the step had time for) continues the
   tool's *streak*. A successful call ends it. Mistakes of the agent (unknown tool, bad arguments)
   do not count.
2. After a streak of ``unavailable_after`` failures, over all trajectories, the tool is down. It is
   not called again in this collection: further calls get the status ``unavailable``.
3. A small collection may have fewer calls than that. At its end, a tool is also down if no call
   succeeded and calls of at least two trajectories failed.
4. Trajectories in the streak, and those with a call that got ``unavailable``, are *affected*. Their
   records end at the step that first met the outage, truncated (``infrastructure``) and not scored.
   A reward of 0 would punish them for a failure that no policy can avoid.
5. `settle` processes the noted results in the order of trajectories, steps and calls. In
   deterministic mode it is called when all live trajectories have finished a step, so its decisions
   do not depend on which tool was faster.

A tool belongs to an environment: two environments may each have a tool ``search``.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from agent_r1.mdp import ToolResult, ToolStatus
from agent_r1.tools.runtime import FAILED

logger = logging.getLogger(__name__)


class Met(NamedTuple):
    """The step at which a trajectory met an outage, and the outage."""

    step: int
    environment: str
    tool: str
    failure: str
    """Text for the user."""

    @property
    def info(self) -> dict[str, str]:
        """``info`` of the trajectory's last row."""
        return {"failure": self.failure, "unavailable_tool": f"{self.environment}.{self.tool}"}


class _Noted(NamedTuple):
    trajectory: str
    step: int
    environment: str
    results: tuple[ToolResult, ...]
    limit: int | None


class Outages:
    """A pure state machine: it depends on no model, event loop or environment."""

    def __init__(self) -> None:
        self._noted: list[_Noted] = []
        self._streaks: dict[tuple[str, str], list[tuple[str, int]]] = {}
        self._last: dict[tuple[str, str], ToolResult] = {}
        self._answered: set[tuple[str, str]] = set()
        self._down: dict[str, dict[str, str]] = {}
        self._affected: dict[str, Met] = {}

    def unavailable(self, environment: str) -> dict[str, str]:
        """The environment's tools that are down → the reason."""
        return self._down.get(environment, {})

    def met_by(self, trajectory: str) -> Met | None:
        """The first outage that affected a trajectory; None if there is none."""
        return self._affected.get(trajectory)

    def note(
        self,
        trajectory: str,
        step: int,
        environment: str,
        results: Sequence[ToolResult],
        limit: int | None,
    ) -> None:
        """Note the results of a step. ``limit`` is the environment's ``unavailable_after``."""
        if results:
            self._noted.append(_Noted(trajectory, step, environment, tuple(results), limit))

    def settle(self) -> None:
        """Process the results noted since the last call."""
        noted, self._noted = self._noted, []
        for one in sorted(noted, key=lambda one: (one.trajectory, one.step)):
            for result in one.results:
                self._take(one, result)

    def conclude(self) -> None:
        """At the end of a collection, find tools that failed for all trajectories using them."""
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
        elif result.name in down:  # called before the tool was known to be down
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
            "that met the outage are not scored",
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

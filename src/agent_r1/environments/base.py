"""The base of every environment."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, ClassVar

from pydantic import Field

from agent_r1.environments.resources import Resources
from agent_r1.mdp import Action, ToolResult
from agent_r1.parameters import Parameters
from agent_r1.tools import ToolBudget, ToolParameters, ToolRuntime, ToolSpec
from agent_r1.tools.mcp import connect

Observation = dict[str, Any]
"""What the agent is told, by name."""

StepResult = tuple[Any, ...]
"""``(observation, reward)``, or Gymnasium's five with ``terminated, truncated, info``."""


class EnvironmentParameters(Parameters):
    """``environment`` in ``conf/``."""

    name: str = "multihop_qa"
    """A name in `ENVIRONMENTS`, or the import path of a class: ``my_package.games:ChessEnv``."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Validated by the environment's own ``Options``."""
    others: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """In a mixture: the options of the other environments, by their names. One that is not named
    has its defaults."""


class EnvironmentOptions(ToolParameters):
    """What every environment can be told; an environment adds its own in its ``Options``."""

    step_timeout_s: float = Field(120.0, gt=0)
    """Seconds that one reset or step may take, all attempts of its tools included, and what they
    wait for a slot, a thread or a process; then the environment counts as broken (end reason
    ``infrastructure``)."""


class BaseEnv:
    """One episode of one task.

    Subclasses define `reset`, usually `@tool` methods, and `step` unless all an action does is
    calling tools. Either may be ``async``. An environment that cannot go on for reasons of its own
    raises `agent_r1.mdp.EnvironmentFailure`.

    What the agent must not see (answers, hidden state) belongs in ``self.task`` or private
    attributes, and in no observation, tool result or info.
    """

    Options: ClassVar[type[EnvironmentOptions]] = EnvironmentOptions
    takes_text: ClassVar[bool] = False
    """Whether a turn that is neither a call nor an answer is an action here: ``step`` then gets it
    with its ``text``, and the agent is not told that it is malformed."""

    def __init__(
        self,
        task: Mapping[str, Any],
        resources: Resources | None = None,
        options: Mapping[str, Any] | EnvironmentOptions | None = None,
    ):
        """
        Args:
            task: a row of the tasks table.
            resources: what all episodes share; read only.
            options: see ``Options``.

        Raises:
            ParameterError: an unknown option or a bad value.
        """
        self.task = task
        self.resources = resources or Resources()
        self.options = self.Options.read(options, "environment.options")
        self.done = False
        """Set it to end the episode with this step."""
        self.observation: Observation | None = None
        """What the agent was told last: the state before its next action."""
        self.tool_results: list[ToolResult] = []
        """What the tools answered in this step."""
        self.unavailable_tools: Collection[str] = ()
        """Names of tools that are down for everyone; the rollout says so. They are not called."""

    @functools.cached_property
    def payload(self) -> dict[str, Any]:
        """The task's own data, parsed."""
        return json.loads(self.task.get("payload") or "{}")

    @functools.cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The `@tool` functions and methods of the class, base classes first, then those of the
        MCP servers in the options. Overriding one without ``@tool`` takes it away.

        Raises:
            MissingExtraError, ParameterError: an MCP server cannot be used; see
                `agent_r1.tools.mcp.connect`.
        """
        own = tuple(getattr(self, name) for name in _tool_names(type(self)))
        servers = self.options.mcp.items()
        return own + tuple(spec for name, at in servers for spec in connect(name, at).tools)

    @functools.cached_property
    def _runtime(self) -> ToolRuntime:
        return ToolRuntime(self.tools, self.options)

    @property
    def tool_budget(self) -> ToolBudget:
        """What this episode has spent on tools."""
        return self._runtime.budget

    @property
    def unfinished_calls(self) -> tuple[ToolResult, ...]:
        """What the calls that are still tried failed with so far."""
        runtime = vars(self).get("_runtime")  # there is none before the first call
        return () if runtime is None else runtime.unfinished

    def reset(self) -> Observation | Awaitable[Observation]:
        """The first observation."""
        raise NotImplementedError(f"{type(self).__name__} must define reset()")

    async def step(self, action: Action) -> StepResult:
        """Execute an action; this one runs its tool calls and rewards nothing.

        A two-tuple ends the episode on an answer, or where ``self.done`` is set. A reward of None
        means *not scored*.
        """
        return await self.use_tools(action), 0.0

    async def use_tools(self, action: Action) -> Observation:
        """Run the action's tool calls, all together, and tell the results in call order.

        A malformed action is told what was wrong with it; an answer gets an empty observation.
        """
        if action.error is not None:
            return {"error": action.error}
        results = await self._runtime.run(action.tool_calls, self.unavailable_tools)
        self.tool_results += results
        return {"tool_results": [result.content for result in results]} if results else {}

    def close(self) -> Awaitable[None] | None:
        """Give back what the episode holds (a simulator, a connection); called once, at its end."""

    def state_key(self) -> str:
        """Equal for equal states of one task: by default the sha256 of the last observation."""
        text = json.dumps(self.observation, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _tool_names(environment: type[BaseEnv]) -> tuple[str, ...]:
    """Attributes of the class that are tools, in order of definition."""
    names = dict.fromkeys(name for base in reversed(environment.__mro__) for name in vars(base))
    return tuple(name for name in names if isinstance(getattr(environment, name), ToolSpec))

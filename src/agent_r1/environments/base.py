"""The base class of environments."""

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
"""What the agent sees: name → content."""

StepResult = tuple[Any, ...]
"""``(observation, reward)`` or, as in Gymnasium, ``(observation, reward, terminated, truncated,
info)``."""


class EnvironmentParameters(Parameters):
    """``environment`` in ``conf/``."""

    name: str = "multihop_qa"
    """A name in `ENVIRONMENTS`, or the import path of a class: ``my_package.games:ChessEnv``."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of this environment, validated by its ``Options`` class."""
    others: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """For a mixture: name of another environment → its options. An environment that is not named
    gets its defaults."""


class EnvironmentOptions(ToolParameters):
    """Options of every environment. An environment adds its own in its ``Options`` class."""

    step_timeout_s: float = Field(120.0, gt=0)
    """Time limit of one reset or step, in seconds. It includes all attempts of the step's tools and
    their waiting for a slot, a thread or a process. A trajectory that exceeds it ends with the
    reason ``infrastructure``."""


class BaseEnv:
    """One episode of one task.

    Subclasses define `reset` and usually `@tool` methods. They define `step` if an action does more
    than call tools. Both methods may be ``async``. An environment that cannot continue raises
    `agent_r1.mdp.EnvironmentFailure`.

    Keep what the agent must not see (answers, hidden state) in ``self.task`` or private attributes,
    never in an observation, a tool result or ``info``.
    """

    Options: ClassVar[type[EnvironmentOptions]] = EnvironmentOptions
    options: EnvironmentOptions
    """The validated options; a subclass with its own ``Options`` annotates it with that class."""
    takes_text: bool = False
    """Whether a turn that is neither a call nor an answer is a valid action. If so, ``step`` gets
    it with its ``text``. If not, the agent sees an error."""

    def __init__(
        self,
        task: Mapping[str, Any],
        resources: Resources | None = None,
        options: Mapping[str, Any] | EnvironmentOptions | None = None,
    ):
        """
        Args:
            task: a row of the tasks table.
            resources: read-only data that all episodes share.
            options: options to validate with ``Options``.

        Raises:
            ParameterError: an option is unknown or has an invalid value.
        """
        self.task = task
        self.resources = resources or Resources()
        self.options = self.Options.read(options, "environment.options")
        self.done = False
        """Set it to True to end the episode with this step."""
        self.observation: Observation | None = None
        """The last observation: the state before the next action."""
        self.tool_results: list[ToolResult] = []
        """Results of this step's tool calls, in call order."""
        self.unavailable_tools: Collection[str] = ()
        """Tools that are down for all trajectories, as the rollout found. They are not called."""

    @functools.cached_property
    def payload(self) -> dict[str, Any]:
        """The task's ``payload``, parsed."""
        return json.loads(self.task.get("payload") or "{}")

    @functools.cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The `@tool` functions and methods of the class, base classes first, then those of the
        MCP servers in the options. A subclass removes a tool by overriding it without ``@tool``.

        Raises:
            MissingExtraError, ParameterError: an MCP server cannot be used; see
                `agent_r1.tools.mcp.connect`.
        """
        cls: type = type(self)
        own = tuple(getattr(self, name) for name in _tool_names(cls))
        servers = self.options.mcp.items()
        return own + tuple(spec for name, at in servers for spec in connect(name, at).tools)

    @functools.cached_property
    def _runtime(self) -> ToolRuntime:
        return ToolRuntime(self.tools, self.options)

    @property
    def tool_budget(self) -> ToolBudget:
        """The tool budget of this episode and how much of it is spent."""
        return self._runtime.budget

    @property
    def unfinished_calls(self) -> tuple[ToolResult, ...]:
        """The last failures of calls that are still being retried."""
        runtime = vars(self).get("_runtime")  # it does not exist before the first call
        return () if runtime is None else runtime.unfinished

    def reset(self) -> Observation | Awaitable[Observation]:
        """Start the episode and return the first observation."""
        raise NotImplementedError(f"{type(self).__name__} must define reset()")

    async def step(self, action: Action) -> StepResult:
        """Execute an action. The default runs its tool calls and returns the reward 0.

        With a two-tuple, the episode ends if the action is an answer or ``self.done`` is set. A
        reward of None means *not scored*.
        """
        return await self.use_tools(action), 0.0

    async def use_tools(self, action: Action) -> Observation:
        """Run the action's tool calls concurrently and return the results in call order.

        For a malformed action the observation is its error. For an answer it is empty.
        """
        if action.error is not None:
            return {"error": action.error}
        results = await self._runtime.run(action.tool_calls, self.unavailable_tools)
        self.tool_results += results
        return {"tool_results": [result.content for result in results]} if results else {}

    def close(self) -> Awaitable[None] | None:
        """Release the episode's resources (a simulator, a connection). Called once, at its end."""

    def state_key(self) -> str:
        """A key that is equal for equal states of one task: the last observation's sha256."""
        text = json.dumps(self.observation, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _tool_names(environment: type) -> tuple[str, ...]:
    """Names of the class's tools, in order of definition."""
    names = dict.fromkeys(name for base in reversed(environment.__mro__) for name in vars(base))
    return tuple(name for name in names if isinstance(getattr(environment, name), ToolSpec))

"""Any Gymnasium environment with text observations and actions.

1. ``options.id`` names the environment; ``my_package:Game-v0`` also imports the package that
   registers it. A task's payload may have its own ``id``, ``seed`` and ``options``. Without a seed,
   one is derived from the task's id, so that each task is the same game in every run.
2. An action is a call ``act(text)``, an answer, or, with ``plain_text``, the turn itself. Several
   calls in one turn are played one after the other.
3. Observations are strings or dicts; any other value is converted with ``str``. With
   ``render_mode: ansi`` in ``options.kwargs``, the observation also has the rendering. Rewards and
   ends are the game's own. JSON entries of the game's info are recorded.

Needs the package ``gymnasium`` (extra ``gymnasium``).
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from agent_r1.chat.base import observation_text
from agent_r1.environments.base import BaseEnv, EnvironmentOptions, Observation, StepResult
from agent_r1.extras import extra_package
from agent_r1.mdp import Action, ActionType, EnvironmentFailure
from agent_r1.seeding import derive_seed
from agent_r1.tools import BadArguments, tool
from agent_r1.tools.failures import reason
from agent_r1.tools.threads import WORKERS

gymnasium = extra_package("gymnasium", "gymnasium")


class GymnasiumEnv(BaseEnv):
    """An episode of a Gymnasium environment; see the module's docstring."""

    class Options(EnvironmentOptions):
        """Options of the environment ``gymnasium``."""

        id: str = ""
        """Id of the Gymnasium environment. A task's payload may name another."""
        kwargs: dict[str, Any] = Field(default_factory=dict)
        """Keyword arguments of `gymnasium.make`."""
        plain_text: bool = False
        """Whether a turn that is neither a call nor an answer is an action. If not, the agent sees
        a parse error."""

    options: Options

    def reset(self) -> Observation:
        """The task's prompt, if it has one, and the game's first observation.

        Raises:
            EnvironmentFailure: no game is named, or its actions are neither text nor numbers.
        """
        self.takes_text = self.options.plain_text
        name = self.payload.get("id") or self.options.id
        if not name:
            raise EnvironmentFailure(
                "no game is named: set environment.options.id, or `id` in the task's payload"
            )
        self._game = gymnasium.make(name, **self.options.kwargs)
        space = self._game.action_space
        if isinstance(space, tuple(getattr(gymnasium.spaces, name) for name in _NOT_TEXT)):
            raise EnvironmentFailure(
                f"the actions of '{name}' are neither text nor numbered ({type(space).__name__}): "
                "wrap it in a gymnasium.ActionWrapper that takes a string"
            )
        self._turn = asyncio.Lock()
        self._lost, self._ends = False, (False, False)
        seed = self.payload.get("seed", derive_seed(0, self.task["task_id"]) % 2**31)
        observation, _ = self._game.reset(seed=seed, options=self.payload.get("options"))
        prompt = self.task.get("prompt")
        return ({"task": prompt} if prompt else {}) | self._seen(observation)

    async def step(self, action: Action) -> StepResult:
        """Play the action; returns Gymnasium's five values. Rewards of several calls are summed."""
        self._reward = 0.0
        self._info: dict[str, Any] = {}
        text = action.answer if action.type is ActionType.ANSWER else None
        if (
            action.type is ActionType.MALFORMED and self.takes_text
        ):  # else `step` got the turn for its code
            text = action.text
        if text is None:
            observation = await self.use_tools(action)
        else:
            try:
                observation = {"observation": await self._act(text)}
            except BadArguments as error:
                observation = {"error": str(error)}
        if self._lost:
            raise EnvironmentFailure("the game did not answer in time, so its state is unknown")
        return observation, self._reward, *self._ends, self._info

    @tool(attempts=1)
    async def act(self, text: str) -> str:
        """Act in the game, and see what happens.

        Args:
            text: what to do.
        """
        return await self._act(text)

    async def _act(self, text: str) -> str:
        async with self._turn:
            if any(self._ends):
                return "the game is over"
            native = _native(self._game.action_space, text)
            try:
                step = functools.partial(self._played, native)
                observation, reward, terminated, truncated, info = await WORKERS.run(step)
            except asyncio.CancelledError:
                self._lost = True
                raise
            except Exception as error:
                raise EnvironmentFailure(f"{type(self._game).__name__}: {reason(error)}") from None
            self._reward += float(reward)
            self._ends = (bool(terminated), bool(truncated))
            self._info |= _json_only(info)
            return observation_text(observation)

    def _played(self, action: Any) -> tuple[Any, ...]:
        observation, *others = self._game.step(action)
        return self._seen(observation), *others

    def _seen(self, observation: Any) -> Observation:
        """The observation, with the rendering if the game renders text."""
        drawn = {"rendering": self._game.render()} if self._game.render_mode == "ansi" else {}
        return _as_dict(observation) | drawn

    def close(self) -> None:
        """Close the game."""
        if hasattr(self, "_game"):
            self._game.close()


_WHOLE_NUMBER = re.compile(r"\s*-?[0-9]{1,18}\s*")
"""A longer number is not an action, and ``int`` raises on very long ones."""
_NOT_TEXT = ("Box", "MultiBinary", "MultiDiscrete", "Dict", "Tuple", "OneOf", "Sequence", "Graph")
"""Gymnasium's action spaces that contain no text. A game's own space is assumed to."""


def _as_dict(observation: Any) -> Observation:
    if isinstance(observation, Mapping):
        return dict(observation)
    return {"observation": observation if isinstance(observation, str) else str(observation)}


def _native(space: Any, text: str) -> Any:
    """The game's action for a text.

    Raises:
        BadArguments: the text is not an action. The message describes valid ones.
    """
    if isinstance(space, gymnasium.spaces.Discrete):
        known = range(int(space.start), int(space.start + space.n))
        number = int(text) if _WHOLE_NUMBER.fullmatch(text) else None
        if number not in known:
            raise BadArguments(f"an action is a whole number from {known[0]} to {known[-1]}")
        return number
    if isinstance(space, gymnasium.spaces.Text) and not space.contains(text):
        raise BadArguments(
            f"an action has {space.min_length} to {space.max_length} characters out of "
            f"{''.join(sorted(space.character_set))!r}"
        )
    return text


def _json_only(info: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that can be stored as JSON; a game may put any object into its info."""
    return {str(key): value for key, value in info.items() if _is_json(value)}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True

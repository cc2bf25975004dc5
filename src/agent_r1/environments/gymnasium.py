"""Any Gymnasium environment that speaks text, played by an agent.

1. ``options.id`` names it (``my_package:Game-v0`` imports the package that registers it); a task's
   payload may have ``id``, ``seed`` and ``options`` of its own. Without a seed, one is derived from
   the task's id, so that each task is the same game in every run.
2. An action is a call ``act(text)``, an answer, or, with ``plain_text``, the turn itself. Several
   calls of one turn are played one after the other.
3. Observations are strings or dicts; anything else is told as its text. With ``render_mode: ansi``
   in ``options.kwargs``, what the game draws is told, too. Rewards and ends are the game's own; of
   its info, what is JSON is recorded.

Needs the package ``gymnasium``, the extra ``gymnasium``.
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
    """See the module."""

    class Options(EnvironmentOptions):
        """Options of the environment ``gymnasium``."""

        id: str = ""
        """The environment's id; a task's payload may name another."""
        kwargs: dict[str, Any] = Field(default_factory=dict)
        """What `gymnasium.make` is given."""
        plain_text: bool = False
        """A turn that is neither a call nor an answer is an action. False tells the agent that it
        could not be parsed."""

    @property
    def takes_text(self) -> bool:
        """See `BaseEnv`."""
        return self.options.plain_text

    def reset(self) -> Observation:
        """The task's prompt, if it has one, and the game's first observation."""
        name = self.payload.get("id") or self.options.id
        if not name:
            raise EnvironmentFailure(
                "no game: set environment.options.id, or `id` in the task's payload"
            )
        self._game = gymnasium.make(name, **self.options.kwargs)
        space = self._game.action_space
        if isinstance(space, tuple(getattr(gymnasium.spaces, name) for name in _NOT_TEXT)):
            raise EnvironmentFailure(
                f"the actions of '{name}' are neither text nor numbered ({type(space).__name__}): "
                "give it a gymnasium.ActionWrapper that takes a string"
            )
        self._turn = asyncio.Lock()
        self._lost, self._ends = False, (False, False)
        seed = self.payload.get("seed", derive_seed(0, self.task["task_id"]) % 2**31)
        observation, _ = self._game.reset(seed=seed, options=self.payload.get("options"))
        prompt = self.task.get("prompt")
        return ({"task": prompt} if prompt else {}) | self._seen(observation)

    async def step(self, action: Action) -> StepResult:
        """Gymnasium's five; the rewards of several calls are added up."""
        self._reward, self._info = 0.0, {}
        text = action.answer if action.type is ActionType.ANSWER else None
        if action.type is ActionType.MALFORMED and self.takes_text:  # else it came for its code
            text = action.text
        if text is None:
            observation = await self.use_tools(action)
        else:
            try:
                observation = {"observation": await self._act(text)}
            except BadArguments as error:
                observation = {"error": str(error)}
        if self._lost:
            raise EnvironmentFailure("the game did not answer in time: its state is not known")
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
        """An observation with the picture, of a game that draws one in text."""
        drawn = {"rendering": self._game.render()} if self._game.render_mode == "ansi" else {}
        return _told(observation) | drawn

    def close(self) -> None:
        """Close the game."""
        if hasattr(self, "_game"):
            self._game.close()


_WHOLE_NUMBER = re.compile(r"\s*-?[0-9]{1,18}\s*")
"""Longer ones are no action, and Python refuses to read very long ones."""
_NOT_TEXT = ("Box", "MultiBinary", "MultiDiscrete", "Dict", "Tuple", "OneOf", "Sequence", "Graph")
"""Gymnasium's own spaces of actions that no text is in. A game may have one of its own."""


def _told(observation: Any) -> Observation:
    if isinstance(observation, Mapping):
        return dict(observation)
    return {"observation": observation if isinstance(observation, str) else str(observation)}


def _native(space: Any, text: str) -> Any:
    """An action as the game takes it.

    Raises:
        BadArguments: it is none; the message says what one is.
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
    """The entries that are JSON; a game may have kept anything there."""
    return {str(key): value for key, value in info.items() if _is_json(value)}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True

"""Text games: find the way, the key and the door, in tens of steps (see `tasks.textworld`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from agent_r1.environments.base import BaseEnv, EnvironmentOptions, Observation, StepResult
from agent_r1.mdp import Action
from agent_r1.tasks.textworld import start_game
from agent_r1.tools import BadArguments, tool


class TextWorldEnv(BaseEnv):
    """An episode ends when the game is won or lost, or when the agent gives up with an answer."""

    class Options(EnvironmentOptions):
        reward: Literal["score", "progress"] = "score"
        """``score``: the game's points (sparse). ``progress``: by how many commands the win came
        closer or moved away (dense). Both sum to 1 over a game that is won."""

    options: Options

    def reset(self) -> Observation:
        """The task, the first scene, and the possible commands."""
        self._game = start_game(self.payload)
        self._state = self._game.reset()
        self._left = self._way = len(self._state.policy_commands)
        return {"task": self._state.objective, "scene": self._scene(self._state.description)}

    def _scene(self, text: str) -> str:
        scene = text.partition("\n>")[0].strip()  # the status line follows
        return f"{scene}\nYou can: {', '.join(self._state.admissible_commands)}"

    async def step(self, action: Action) -> StepResult:
        """Play the commands of an action one after the other."""
        self._reward, observation = 0.0, await self.use_tools(replace(action, tool_calls=()))
        for call in action.tool_calls:
            await self.use_tools(replace(action, tool_calls=(call,)))
            observation = {"tool_results": [result.content for result in self.tool_results]}
        return observation, self._reward

    @tool(attempts=1)
    def act(self, command: str) -> str:
        """Do something in the game: one of the commands that it says you can do."""
        if (
            self.done or command not in self._state.admissible_commands
        ):  # such as save, undo, restart
            raise BadArguments("that cannot be done")
        score, left = self._state.score, self._left
        self._state, _, self.done = self._game.step(command)
        self._left = 0 if self._state.won else len(self._state.policy_commands) or left
        points = (self._state.score - score) / self._state.max_score
        dense = self.options.reward == "progress"
        self._reward += (left - self._left) / self._way if dense else points
        return self._scene(self._state.feedback)

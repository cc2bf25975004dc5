"""Text games: find the way, the key and the door, in tens of steps (see `tasks.textworld`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from agent_r1.environments.base import BaseEnv, EnvironmentOptions, Observation, StepResult
from agent_r1.mdp import Action
from agent_r1.tasks.textworld import start_game
from agent_r1.tools import BadArguments, tool


class TextWorldEnv(BaseEnv):
    """A game that is won, lost, or given up with an answer; commands are played one by one."""

    class Options(EnvironmentOptions):
        """Options of the environment ``textworld``."""

        reward: Literal["score", "progress"] = "score"
        """``score``: points (sparse). ``progress``: by how many commands a win has come nearer, or
        gone away (dense). Over a game that is won, either sums to 1."""

    def reset(self) -> Observation:
        """The task, the first scene, and what can be done."""
        self._game = start_game(self.payload)
        self._state = self._game.reset()
        self._left = self._way = len(self._state.policy_commands)
        return {"task": self._state.objective, "scene": self._told(self._state.description)}

    def _told(self, text: str) -> str:
        scene = text.partition("\n>")[0].strip()  # behind it stands the status line
        return f"{scene}\nYou can: {', '.join(self._state.admissible_commands)}"

    async def step(self, action: Action) -> StepResult:
        """Play the commands of an action in order."""
        self._reward, told = 0.0, await self.use_tools(replace(action, tool_calls=()))
        for call in action.tool_calls:
            await self.use_tools(replace(action, tool_calls=(call,)))
            told = {"tool_results": [result.content for result in self.tool_results]}
        return told, self._reward

    @tool(attempts=1)
    def act(self, command: str) -> str:
        """Do something in the game: one of the commands that it says you can do."""
        if self.done or command not in self._state.admissible_commands:  # no save, undo, restart
            raise BadArguments("that cannot be done")
        score, left = self._state.score, self._left
        self._state, _, self.done = self._game.step(command)
        self._left = 0 if self._state.won else len(self._state.policy_commands) or left
        points = (self._state.score - score) / self._state.max_score
        dense = self.options.reward == "progress"
        self._reward += (left - self._left) / self._way if dense else points
        return self._told(self._state.feedback)

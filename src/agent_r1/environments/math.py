"""Word problems with a calculator and, optionally, Python in the sandbox."""

from __future__ import annotations

from agent_r1.environments.base import BaseEnv, EnvironmentOptions, Observation, StepResult
from agent_r1.mdp import Action
from agent_r1.tools import ToolSpec, tool
from agent_r1.tools.arithmetic import calculate
from agent_r1.tools.program import PATIENCE_S, run_program
from agent_r1.tools.sandbox import SandboxParameters


class MathEnv(BaseEnv):
    """The agent can compute, and its answer ends the episode. Reward terms compare the answer with
    the task's answers. A task's own verifier, if it has one, scores the answer here."""

    class Options(EnvironmentOptions):
        python: bool = False
        """Whether the agent also has the tool ``python``."""
        sandbox: SandboxParameters = SandboxParameters()
        """Limits of a program."""

    options: Options

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools; ``python`` only if the options enable it."""
        return tuple(it for it in super().tools if self.options.python or it.name != "python")

    def reset(self) -> Observation:
        """The problem."""
        return {"question": self.task["prompt"]}

    async def step(self, action: Action) -> StepResult:
        """Run the tool calls. If the task has a verifier, it scores an answer."""
        reward, verifier = 0.0, self.payload.get("verifier")
        if verifier and action.answer is not None:
            from agent_r1.tasks.reasoning_gym import score_answer

            reward = score_answer(verifier, action.answer)
        return await self.use_tools(action), reward

    @tool(attempts=1)
    def calculate(self, expression: str) -> str:
        """Compute an arithmetic expression such as 3 * (4 + 5)."""
        return calculate(expression)

    @tool(attempts=1, timeout_s=PATIENCE_S)
    def python(self, code: str) -> str:
        """Run a Python program and read what it prints."""
        return run_program(code, self.options.sandbox)

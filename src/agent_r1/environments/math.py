"""Word problems with a calculator, and, if asked for, Python in the sandbox."""

from __future__ import annotations

from agent_r1.environments.base import BaseEnv, EnvironmentOptions, Observation, StepResult
from agent_r1.mdp import Action
from agent_r1.tools import ToolSpec, tool
from agent_r1.tools.arithmetic import calculate
from agent_r1.tools.program import PATIENCE_S, run_program
from agent_r1.tools.sandbox import SandboxParameters


class MathEnv(BaseEnv):
    """A problem, tools that compute, an answer that ends the episode. Reward terms compare it with
    the task's answers; a task that brings its own verifier is scored here, by that."""

    class Options(EnvironmentOptions):
        """Options of the environment ``math``."""

        python: bool = False
        """Offer the tool ``python`` too."""
        sandbox: SandboxParameters = SandboxParameters()
        """Limits of its programs."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """All that there are, Python only where the options say so."""
        return tuple(it for it in super().tools if self.options.python or it.name != "python")

    def reset(self) -> Observation:
        """The problem."""
        return {"question": self.task["prompt"]}

    async def step(self, action: Action) -> StepResult:
        """Run the calls; let the task's own verifier, if it has one, score an answer."""
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

"""Programming with hidden tests, as in HumanEval and MBPP. Programs run in the sandbox."""

from __future__ import annotations

from typing import Any

from agent_r1.environments.base import BaseEnv, EnvironmentOptions, Observation
from agent_r1.mdp import Action, ActionType
from agent_r1.tools import tool
from agent_r1.tools.program import PATIENCE_S, ProgramError, behind, passes, run_program
from agent_r1.tools.sandbox import SandboxParameters


class CodeEnv(BaseEnv):
    """The agent can run programs, and submits its solution as the answer: the first code block, or
    the whole answer if there is none. The reward is 1 if the solution passes the hidden tests."""

    class Options(EnvironmentOptions):
        sandbox: SandboxParameters = SandboxParameters()
        """Limits of a program."""

    options: Options

    def reset(self) -> Observation:
        """The task's text."""
        return {"task": self.task["prompt"]}

    def step(self, action: Action) -> Any:
        """Test an answer, run a code block that comes without tool calls, or run the tool calls."""
        if action.type is ActionType.ANSWER:
            return {}, float(self._solves(action.code or action.answer or ""))
        if action.code and not action.tool_calls:
            try:
                return {"output": self.run(action.code) or "it printed nothing"}, 0.0
            except ProgramError as error:
                return {"error": str(error)}, 0.0
        return super().step(action)

    def _solves(self, code: str) -> bool:
        given = self.payload.get("prelude", "")
        names = {key: self.payload[key] for key in ("tests", "entry_point")}
        names["classes"] = self.payload.get("classes", ())
        program = behind(given, code, names["entry_point"])
        return passes(program, prelude=given, limits=self.options.sandbox, **names)

    @tool(attempts=1, timeout_s=PATIENCE_S)
    def run(self, code: str) -> str:
        """Run a Python program and read what it prints."""
        return run_program(code, self.options.sandbox)

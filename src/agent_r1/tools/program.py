"""Programs that an agent writes, run in the sandbox (`agent_r1.tools.sandbox`).

What an agent's program does wrong is told to the agent. A sandbox that does not work is a broken
environment: it says nothing about the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_r1.mdp import EnvironmentFailure

_LAST_CHARS = 150
"""Characters of what a failing program complained about: the end says what was wrong."""


class ProgramError(RuntimeError):
    """A program failed; the message is for the agent."""


def run_program(program: str, limits: Mapping[str, Any] | None = None) -> str:
    """What a Python program prints.

    Args:
        program: its text.
        limits: `agent_r1.tools.sandbox.SandboxParameters`, as ``conf/`` has them.

    Raises:
        ProgramError: it failed, ran out of time, or went over another limit of the sandbox.
        EnvironmentFailure: there is no sandbox, or it failed.
        ParameterError: an unknown limit.
    """
    from agent_r1.tools import sandbox

    parameters = sandbox.SandboxParameters.read(limits, "environment.options.sandbox")
    try:
        ran = sandbox.Sandbox(parameters).run(program)
    except (sandbox.SandboxUnavailable, sandbox.SandboxError) as error:
        raise EnvironmentFailure(str(error)) from error
    if ran.status != "ok":
        raise ProgramError(f"{ran.status}: {ran.stderr.strip()[-_LAST_CHARS:]}")
    return ran.stdout


def passes(
    solution: str,
    tests: str,
    entry_point: str | None = None,
    prelude: str = "",
    limits: Mapping[str, Any] | None = None,
) -> bool:
    """Whether a solution passes tests that it never sees.

    Args:
        solution: the whole program.
        tests: HumanEval's ``check``, or MBPP's assertions.
        entry_point: the function under test, where the tests do not name it.
        prelude: what the task gives to solution and tests alike.
        limits: as for `run_program`.

    Raises:
        EnvironmentFailure: there is no sandbox, it failed, or no solution could pass these tests.
        ParameterError: an unknown limit.
    """
    from agent_r1.tools import sandbox

    parameters = sandbox.SandboxParameters.read(limits, "environment.options.sandbox")
    try:
        verdict = sandbox.run_tests(
            solution, tests, entry_point=entry_point, prelude=prelude, parameters=parameters
        )
    except (sandbox.SandboxUnavailable, sandbox.SandboxError, sandbox.TestsUnusable) as error:
        raise EnvironmentFailure(str(error)) from error
    return bool(verdict.passed)

"""Runs programs that an agent writes, in the sandbox (`agent_r1.tools.sandbox`).

If the program fails, the agent gets the message. If the sandbox fails, the environment is broken,
which says nothing about the agent.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection

from agent_r1.mdp import EnvironmentFailure
from agent_r1.tools.failures import BadArguments
from agent_r1.tools.sandbox import (
    Sandbox,
    SandboxError,
    SandboxParameters,
    SandboxUnavailable,
    Status,
    TestsUnusable,
    run_tests,
)

PATIENCE_S = 3600.0
"""Time limit of a tool that runs programs, in seconds. The sandbox's own limit ends a program long
before: if the tool timed out, a program that never ends would look like a tool that is down."""
_INDENT = "    "
"""As in HumanEval's prompts."""
_LAST_CHARS = 150
"""Characters kept of a failing program's stderr: its end says what was wrong."""


class ProgramError(BadArguments):
    """A program failed; the message is for the agent."""


def run_program(program: str, limits: SandboxParameters | None = None) -> str:
    """Run a Python program and return what it prints.

    Raises:
        ProgramError: it failed, ran out of time, or went over another limit of the sandbox.
        EnvironmentFailure: this machine has no sandbox, or the sandbox failed.
    """
    try:
        ran = Sandbox(limits).run(program)
    except (SandboxUnavailable, SandboxError) as error:
        raise EnvironmentFailure(str(error)) from error
    if ran.status is not Status.OK:
        raise ProgramError(f"{ran.status}: {ran.stderr.strip()[-_LAST_CHARS:]}")
    return ran.stdout


def behind(given: str, solution: str, entry_point: str | None) -> str:
    """The whole program: the task's code, followed by the solution.

    The solution's imports from ``__future__`` go first, as Python requires. A solution that does
    not define ``entry_point`` is taken as the body of that function, and indented as needed: a
    plain-text answer loses the whitespace before its first line, or was written without any.
    """
    lines = solution.splitlines(keepends=True)
    future = [line for line in lines if line.startswith("from __future__ ")]
    given = "".join([*future, given])
    solution = "".join(line for line in lines if line not in future)
    if entry_point is None or solution[:1].isspace():
        return f"{given}\n{solution}"
    if not re.search(rf"^((async )?def {entry_point}\b|{entry_point}\b.*=)", solution, re.M):
        rest = solution.partition("\n")[2].split("\n")
        unindented = any(line[:1].strip() for line in rest)
        solution = textwrap.indent(solution, _INDENT) if unindented else _INDENT + solution
    return f"{given}\n{solution}"


def passes(
    solution: str,
    tests: str,
    entry_point: str | None = None,
    prelude: str = "",
    classes: Collection[str] = (),
    limits: SandboxParameters | None = None,
) -> bool:
    """Whether a solution passes hidden tests.

    The arguments are those of `run_tests`; ``limits`` are its ``parameters``.

    Raises:
        EnvironmentFailure: this machine has no sandbox, the sandbox failed, or no solution can
            pass these tests.
    """
    try:
        verdict = run_tests(
            solution,
            tests,
            entry_point=entry_point,
            prelude=prelude,
            classes=classes,
            parameters=limits,
        )
    except (SandboxUnavailable, SandboxError, TestsUnusable) as error:
        raise EnvironmentFailure(str(error)) from error
    return verdict.passed

"""Programs that an agent writes, run in the sandbox (`agent_r1.tools.sandbox`).

What an agent's program does wrong is told to the agent. A sandbox that does not work is a broken
environment: it says nothing about the agent.
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
"""Seconds; time limit of a tool that runs programs. The sandbox has one of its own, long before: by
the tool's, a program that never ends would look like a tool that is down."""
_INDENT = "    "
"""As the prompts of HumanEval have it."""
_LAST_CHARS = 150
"""Characters of what a failing program complained about: the end says what was wrong."""


class ProgramError(BadArguments):
    """A program failed; the message is for the agent."""


def run_program(program: str, limits: SandboxParameters | None = None) -> str:
    """What a Python program prints.

    Args:
        program: its text.
        limits: what it may use.

    Raises:
        ProgramError: it failed, ran out of time, or went over another limit of the sandbox.
        EnvironmentFailure: there is no sandbox, or it failed.
    """
    try:
        ran = Sandbox(limits).run(program)
    except (SandboxUnavailable, SandboxError) as error:
        raise EnvironmentFailure(str(error)) from error
    if ran.status is not Status.OK:
        raise ProgramError(f"{ran.status}: {ran.stderr.strip()[-_LAST_CHARS:]}")
    return ran.stdout


def behind(given: str, solution: str, entry_point: str | None) -> str:
    """The whole program: what the task gives, and behind it the solution.

    Its imports from ``__future__`` come first of all, as Python wants them. A solution that does
    not define the function is taken for its body. As an answer in plain text that has lost the
    blanks before its first line, or it was written without any.
    """
    lines = solution.splitlines(keepends=True)
    future = [line for line in lines if line.startswith("from __future__ ")]
    given = "".join([*future, given])
    solution = "".join(line for line in lines if line not in future)
    if entry_point is None or solution[:1].isspace():
        return f"{given}\n{solution}"
    if not re.search(rf"^((async )?def {entry_point}\b|{entry_point}\b.*=)", solution, re.M):
        rest = solution.partition("\n")[2].split("\n")
        stands_left = any(line[:1].strip() for line in rest)
        solution = textwrap.indent(solution, _INDENT) if stands_left else _INDENT + solution
    return f"{given}\n{solution}"


def passes(
    solution: str,
    tests: str,
    entry_point: str | None = None,
    prelude: str = "",
    classes: Collection[str] = (),
    limits: SandboxParameters | None = None,
) -> bool:
    """Whether a solution passes tests that it never sees.

    Args:
        solution: the whole program.
        tests: HumanEval's ``check``, or MBPP's assertions.
        entry_point: the function under test, where the tests do not name it.
        prelude: what the task gives to solution and tests alike.
        classes: classes that a solution must define, because the tests make objects of them.
        limits: as for `run_program`.

    Raises:
        EnvironmentFailure: there is no sandbox, it failed, or no solution could pass these tests.
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

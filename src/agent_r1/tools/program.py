"""Programs that an agent writes, run in the sandbox: what the agent reads of them."""

from __future__ import annotations

_LAST_CHARS = 200
"""Characters of what a failing program complained about: the end says what was wrong."""


class ProgramError(RuntimeError):
    """A program failed; the message is for the agent."""


def run_program(program: str) -> str:
    """What a Python program prints.

    Raises:
        ProgramError: it failed, ran out of time, or went over another limit of the sandbox.
    """
    from agent_r1.tools.sandbox import Sandbox, SandboxParameters

    ran = Sandbox(SandboxParameters()).run(program)
    if ran.status != "ok":
        raise ProgramError(f"{ran.status}: {ran.stderr.strip()[-_LAST_CHARS:]}")
    return ran.stdout

"""Runs untrusted programs one at a time, each in a fresh sandbox."""

from __future__ import annotations

from collections.abc import Mapping

from agent_r1.tools.sandbox.launch import MAIN
from agent_r1.tools.sandbox.levels import level_for
from agent_r1.tools.sandbox.parameters import SandboxParameters
from agent_r1.tools.sandbox.process import Confined, Ended
from agent_r1.tools.sandbox.result import SandboxResult, Status


class Sandbox:
    """Runs Python programs within ``parameters``; keeps nothing between runs."""

    def __init__(self, parameters: SandboxParameters | None = None):
        """
        Raises:
            SandboxUnavailable: this machine does not support the isolation asked for.
        """
        self.parameters = parameters or SandboxParameters()
        self.level = level_for(self.parameters)

    def run(
        self, program: str, *, stdin: str = "", files: Mapping[str, str] | None = None
    ) -> SandboxResult:
        """Run ``program`` to its end or to a limit; nothing of it is left afterwards.

        Args:
            program: Python source; only the standard library can be imported.
            files: relative name → text, in its working folder, from where it can import them.

        Raises:
            ValueError: a file's name leads out of the folder.
            SandboxError: the sandbox failed, which says nothing about the program.
        """
        with Confined(self.level, {**(files or {}), MAIN: program}, self.parameters) as confined:
            return self._result(confined.finish(stdin.encode("utf-8", "replace")))

    def _result(self, ended: Ended) -> SandboxResult:
        kept = self.parameters.output_chars
        stdout, stderr = (text.decode("utf-8", "replace") for text in ended[3:5])
        last_line = stderr.rstrip().rpartition("\n")[2]
        status = Status.OUTPUT if ended.stopped else Status(ended.status)
        if max(len(stdout), len(stderr)) > kept:
            status = Status.OUTPUT
        elif status is Status.ERROR and last_line.startswith("MemoryError"):
            status = Status.MEMORY
        return SandboxResult(status, ended.exit_code, stdout[:kept], stderr[:kept], ended.seconds)

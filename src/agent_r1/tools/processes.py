"""Isolated tools: calls in worker processes, which are killed when their time is over.

1. A call goes to an idle worker process, or to a new one, which runs `agent_r1.tools.worker`. The
   request says where to import the function from, and holds its arguments as JSON.
2. The worker imports the function, reports that it begins, calls it, and answers with JSON. The
   time limit covers the function alone: neither starting Python nor imports count.
3. A worker that answered is used again, whatever the answer was. One that ran out of time, died or
   answered something invalid is killed with its process group, and the next call gets a new one.
   Answers carry the number of their call, so text that a tool writes to the connection is skipped
   and never taken for the answer to another call.
4. Workers end with this program, however it ends: their standard input closes.

This is not a sandbox: the function has this user's rights, files and environment variables, and a
process that it moves to another session survives the kill.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from agent_r1.mdp import EnvironmentFailure
from agent_r1.tools.failures import BadArguments, RemoteFailure
from agent_r1.tools.output import ToolOutput
from agent_r1.tools.threads import TimeLimitExceeded, WorkerThreads

MAX_PROCESSES = max(4, os.cpu_count() or 1)
"""Calls at once. Isolated tools compute rather than wait, so as many as there are cores; a few more
on small machines, because a call that hangs keeps its worker until its time is over."""

START_S = 60.0
"""Seconds for Python and the tool's module to load."""

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from agent_r1.tools.worker import serve; serve()"
)


class WorkerProcesses:
    """Runs functions for any number of event loops, in at most ``limit`` processes."""

    def __init__(self, limit: int = MAX_PROCESSES):
        # Each process has a thread that waits for it, so the limit of threads holds for both.
        self._threads = WorkerThreads(limit)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        atexit.register(self._close_if_owner, os.getpid())

    async def run(
        self,
        function: Callable[..., Any],
        arguments: Mapping[str, Any],
        timeout_s: float,
        kept: int,
    ) -> ToolOutput:
        """Call the function with these JSON arguments; its output, cut to ``kept`` characters.

        Waiting for a free process does not count against the time limit.

        Raises:
            TimeLimitExceeded: it ran longer than ``timeout_s``; its process is killed.
            BadArguments, EnvironmentFailure: the function raised it.
            RemoteFailure: it raised something else, or its process died.
        """
        request = {**_location(function), "arguments": arguments, "kept": kept}
        return await self._threads.run(functools.partial(self._call, request, timeout_s))

    def close(self) -> None:
        """Kill all workers; a call that is running fails."""
        with self._lock:
            idle, busy = self._idle, self._all.difference(self._idle)
            self._all, self._idle = set(), []
        for worker in idle:
            worker.kill()
        for worker in busy:
            worker.stop()  # the pipe ends, so its call fails and kills it

    def _call(self, request: Mapping[str, Any], timeout_s: float) -> ToolOutput:
        worker = self._take()
        try:
            answer = worker.call(request, timeout_s)
        except BaseException:
            with self._lock:
                self._all.discard(worker)
            worker.kill()
            raise
        with self._lock:
            closed = worker not in self._all
            if not closed:
                self._idle.append(worker)
        if closed:
            worker.kill()
        return _outcome(answer)

    def _take(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    return worker
                self._all.discard(worker)
            worker = _Worker()
            self._all.add(worker)
            return worker

    def _close_if_owner(self, owner: int) -> None:
        """Close, but not in a fork: it inherits the list without owning the workers."""
        if os.getpid() == owner:
            self.close()


class _Worker:
    """One process, in its own session so that a kill reaches everything it started."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._unread = b""
        self._calls = 0

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def call(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        self._calls += 1
        try:
            numbered = {**request, "call": self._calls}
            self._requests.write(json.dumps(numbered).encode() + b"\n")
            self._requests.flush()
        except OSError:
            raise RemoteFailure(self._death()) from None
        try:
            answer = self._read(START_S)
        except TimeLimitExceeded:
            raise RemoteFailure(f"its module did not load within {START_S:g} s") from None
        return self._read(timeout_s) if answer.get("began") else answer

    def _read(self, timeout_s: float) -> dict[str, Any]:
        """The next answer to the latest call."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                answer = json.loads(self._line(deadline))
            except ValueError:
                raise RemoteFailure("its process answered what is not JSON") from None
            if isinstance(answer, dict) and answer.get("call") == self._calls:
                return answer

    def _line(self, deadline: float) -> bytes:
        with selectors.DefaultSelector() as ready:
            ready.register(self._answers, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not ready.select(max(0.0, deadline - time.monotonic())):
                    raise TimeLimitExceeded
                received = os.read(self._answers.fileno(), 1 << 16)
                if not received:
                    raise RemoteFailure(self._death())
                self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _death(self) -> str:
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "its process closed its connection"
        if code < 0:
            known = signal.Signals(-code).name if -code in set(signal.Signals) else -code
            return f"its process was killed by {known}"
        return f"its process ended with exit code {code}"

    def stop(self) -> None:
        """Kill it. Its pipes stay open: closing one would not wake a thread that waits for it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def kill(self) -> None:
        """Kill it, and close its pipes."""
        self.stop()
        for pipe in (self._requests, self._answers):
            with contextlib.suppress(OSError):  # an unsent request cannot be flushed
                pipe.close()


def _location(function: Callable[..., Any]) -> dict[str, str]:
    """Where a worker finds the function: by its module, or by the file of a script.

    Raises:
        RemoteFailure: it is defined in a notebook or a console.
    """
    module, file = function.__module__, ""
    if module == "__main__":
        file = str(getattr(sys.modules["__main__"], "__file__", "") or "")
        if not os.path.isfile(file):
            raise RemoteFailure(
                "an isolated tool must stand in a file: a process cannot import from a notebook"
            )
    return {"module": module, "file": file, "qualname": function.__qualname__}


def _outcome(answer: Mapping[str, Any]) -> ToolOutput:
    if "text" in answer:
        return ToolOutput(answer["text"], answer["length"])
    if "bad_arguments" in answer:
        raise BadArguments(answer["bad_arguments"])
    if "environment_failure" in answer:
        raise EnvironmentFailure(answer["environment_failure"])
    raise RemoteFailure(str(answer.get("failed", "its process gave no answer")))


PROCESSES = WorkerProcesses()
"""Shared by all isolated tools of the program."""

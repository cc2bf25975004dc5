"""One sandboxed process, from the caller's side: start it, feed it, read it, stop it.

1. Three pipes are its streams. A socket connects this process with the supervisor inside
   (`inside.supervise`); the program does not have the socket.
2. The supervisor gets what to run. It sends ``started`` and, when the program and everything that
   it started are gone, ``ended``. Shutting down our side of the socket is the order to stop.
3. Levels without their own file system use a temporary folder of this machine as the private
   folder, which is removed afterwards.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import selectors
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from agent_r1.tools.sandbox.launch import PRIVATE, command, specification
from agent_r1.tools.sandbox.parameters import Level, SandboxParameters
from agent_r1.tools.sandbox.result import SandboxError

START_S = 60.0
"""Seconds that a loaded machine may take to start the sandbox and to clean up after it."""
_CHUNK = 1 << 16


class Ended(NamedTuple):
    """How the program ended, and what it wrote."""

    status: str
    exit_code: int | None
    seconds: float
    stdout: bytes
    stderr: bytes
    stopped: bool
    """It wrote too much, or `Confined.stop` was called."""


class Confined:
    """A program in a sandbox. As a context manager, it leaves nothing of the program behind."""

    def __init__(
        self,
        level: Level,
        files: Mapping[str, str],
        parameters: SandboxParameters,
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ):
        """Start it. ``files`` holds ``main.py``; stream descriptors stay open for the caller.

        Raises:
            SandboxUnavailable: the level is not available.
            ValueError: the name of a file leads out of the private folder.
            OSError: the process cannot be started.
        """
        self._parameters = parameters
        self._begin = time.monotonic()
        shared = level in (Level.RLIMITS, Level.NONE)
        self._folder = tempfile.mkdtemp(prefix="sandbox-") if shared else None
        self._control, theirs = socket.socketpair()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            spec = specification(level, self._folder or PRIVATE, files, parameters)
            with theirs:
                self._process = subprocess.Popen(
                    command(level, theirs.fileno(), parameters),
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env={},
                    cwd="/",
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            self._control.settimeout(START_S)
            with contextlib.suppress(OSError):  # it died; its stderr says why
                self._control.sendall(json.dumps(spec).encode() + b"\n")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Confined:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """Order the supervisor to kill everything; from any thread, any number of times."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Stop it if it still runs, and remove its folder."""
        self.stop()
        if self._process is not None:
            try:
                self._process.wait(START_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self._control.close()
        if self._folder is not None:
            _remove(self._folder)

    def finish(self, stdin: bytes = b"") -> Ended:
        """Feed it, read until it has ended, and return how it ended.

        Raises:
            SandboxError: the sandbox, not the program, failed.
        """
        talk = _Conversation(self, stdin)
        talk.run(self._begin + self._parameters.timeout_s + START_S)
        stdout, stderr = map(bytes, talk.kept)
        report = talk.messages.get("ended")
        failed = talk.messages.get("failed")
        if report is None and talk.messages.get("started"):
            # The program killed its own supervisor: its fault, not the machine's.
            report = {"status": "error", "exit_code": None, "seconds": 0.0, "clean": True}
        if failed or report is None or not report["clean"]:
            said = stderr.decode("utf-8", "replace").strip()[-500:]
            why = failed or said or "it did not start, or did not end, in time"
            raise SandboxError(f"the sandbox failed: {why}")
        stopped = talk.stopped or report["status"] == "stopped"
        how = (report["status"], report["exit_code"], report["seconds"])
        return Ended(*how, stdout, stderr, stopped)


class _Conversation:
    """The exchange over the pipes and the socket; none of them blocks the others."""

    def __init__(self, confined: Confined, stdin: bytes):
        assert confined._process is not None  # None only while it starts
        self._confined = confined
        self._process = confined._process
        self._input = memoryview(stdin)
        self._most = 4 * confined._parameters.output_chars  # a character has up to 4 bytes in UTF-8
        self._line = bytearray()
        self.kept = (bytearray(), bytearray())
        """Of stdout and stderr."""
        self.messages: dict[str, Any] = {}
        self.stopped = False

    def run(self, deadline: float) -> None:
        with selectors.DefaultSelector() as streams:
            self._register(streams)
            while streams.get_map():
                ready = streams.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    break
                for key, _ in ready:
                    if not key.data(key.fileobj):
                        streams.unregister(key.fileobj)
                        if key.data == self._feed:
                            self._end_input()

    def _register(self, streams: selectors.BaseSelector) -> None:
        self._confined._control.setblocking(False)
        streams.register(self._confined._control, selectors.EVENT_READ, self._hear)
        if self._process.stdin is not None and self._input:
            os.set_blocking(self._process.stdin.fileno(), False)
            streams.register(self._process.stdin, selectors.EVENT_WRITE, self._feed)
        else:
            self._end_input()
        outputs = (self._process.stdout, self._process.stderr)
        for stream, kept in zip(outputs, self.kept, strict=True):
            if stream is not None:
                keep = functools.partial(self._keep, kept)
                streams.register(stream, selectors.EVENT_READ, keep)

    def _end_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _feed(self, stream: Any) -> bool:
        try:
            self._input = self._input[os.write(stream.fileno(), self._input[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except OSError:  # the program does not read
            self._input = self._input[:0]
        return bool(self._input)

    def _keep(self, kept: bytearray, stream: Any) -> bool:
        part = os.read(stream.fileno(), _CHUNK)
        kept += part[: self._most + 1 - len(kept)]
        if len(kept) > self._most and not self.stopped:
            self.stopped = True
            self._confined.stop()
        return bool(part)

    def _hear(self, control: socket.socket) -> bool:
        try:
            part = control.recv(_CHUNK)
        except OSError:
            return False
        self._line += part
        *lines, self._line = self._line.split(b"\n")
        for line in lines:
            self.messages |= json.loads(line)
        return bool(part)


def _remove(folder: str) -> None:
    """Remove a folder that a hostile program left: very deep, or without permissions."""
    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(folder)
        return
    for tool in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        subprocess.run([*tool, "--", folder], capture_output=True, check=False)

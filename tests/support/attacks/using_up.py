"""Using up the machine: memory, disk, processes, time, output."""

from __future__ import annotations

from tests.support.attacks.attack import Attack

_BY_FORCE = ("timeout", "error", "memory", "processes", "disk")

USING_UP = {
    "fork bomb": Attack("while True:\n    try: os.fork()\n    except OSError: pass", _BY_FORCE, 3),
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
        _BY_FORCE,
        3,
    ),
    "thread bomb": Attack(
        "while True: threading.Thread(target=time.sleep, args=(1000,)).start()",
        _BY_FORCE,
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
    "memory behind a thread that has ended": Attack(
        """
        def hold():
            time.sleep(0.05)
            held = bytearray(150 << 20)
            for place in range(0, len(held), 4096): held[place] = 1
            time.sleep(1000)
        for _ in range(6):
            if os.fork() == 0:
                threading.Thread(target=hold).start()
                syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # the first thread alone
        time.sleep(1000)
        """,
        ("memory",),
    ),
    "shared memory that nothing shows": Attack(
        """
        libc.mmap.restype = ctypes.c_void_p
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        size = 64 << 20
        def keep_one_page(descriptor, flags):
            for _ in range(8):
                place = libc.mmap(
                    None, ctypes.c_size_t(size), 3, flags, descriptor, ctypes.c_size_t(0))
                if place == 2 ** 64 - 1:
                    raise OSError(ctypes.get_errno(), "mmap")
                ctypes.memset(place, 1, size)
                libc.munmap(place + 4096, size - 4096)  # the mapping's other pages stay in memory
        attempt("anonymous", lambda: keep_one_page(-1, 0x21))
        attempt("anonymous, validated", lambda: keep_one_page(-1, 0x23))
        attempt("zero", lambda: keep_one_page(os.open("/dev/zero", os.O_RDWR), 1))
        """,
    ),
    "files of sizes and names": Attack(
        """
        with open("sparse", "wb") as file: attempt("sparse", lambda: file.truncate(1 << 40))
        attempt("allocated", lambda: os.posix_fallocate(os.open("a", os.O_CREAT | 1), 0, 1 << 30))
        attempt("a long name", lambda: os.mkdir("n" * 300))
        attempt("a long path", lambda: os.mkdir("p/" * 3000))
        nameless = os.open(".", os.O_TMPFILE | os.O_RDWR)
        def fill():
            for _ in range(64): os.write(nameless, bytes(1 << 20))
        attempt("without a name", fill)
        """,
    ),
    "counts of the whole machine": Attack(
        """
        X86 = os.uname().machine == "x86_64"
        context = ctypes.create_string_buffer(8)
        attempt("AIO", lambda: syscall(206 if X86 else 0, 60_000, context))
        attempt("inotify", lambda: syscall(294 if X86 else 26, 0))
        attempt("locked memory", lambda: syscall(149 if X86 else 228, id(context), 1 << 16))
        attempt("message queue", lambda: syscall(240 if X86 else 180, b"/q", 0o102, 0o600, 0))
        """,
    ),
    "a stack that overflows": Attack("ctypes.CFUNCTYPE(None)(0)()", ("error",)),
    "input that is not read, output that is not awaited": Attack(
        """
        os.set_blocking(1, False); os.set_blocking(0, False)
        os.close(0)
        try:
            while True: os.write(1, b"z" * 65536)
        except BlockingIOError: time.sleep(1000)
        """,
        ("output",),
    ),
}

"""Solutions that try to pass without solving. The task is to double a number."""

from __future__ import annotations

CHEATS = {
    "nothing": "",
    "not Python": "def double(x:",
    "no function of that name": "def triple(x): return x * 3",
    "None": "def double(x): return None",
    "exit before": "import sys; sys.exit(0)",
    "exit at once before": "import os; os._exit(0)",
    "exit during": "import sys\ndef double(x): sys.exit(0)",
    "exit at once during": "import os\ndef double(x): os._exit(0)",
    "exit at the end": "import atexit, os\natexit.register(os._exit, 0)\ndef double(x): pass",
    "quit": "def double(x): raise SystemExit(0)",
    "interrupt": "def double(x): raise KeyboardInterrupt",
    "raising what tests raise": "def double(x): raise AssertionError",
    "an alarm": """
        import os, signal
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0)); signal.setitimer(0, 0.01)
        def double(x):
            while True: pass
        """,
    "a verdict, printed": """
        import os, sys
        line = '{"number": "0", "outcome": "passed", "detail": ""}'
        print(line); print(line, file=sys.stderr); sys.__stdout__.write(line)
        def double(x): print(line)
        """,
    "a verdict, to every descriptor": """
        import os
        def double(x):
            for number in range(64):
                try: os.write(number, b'{"outcome": "passed", "number": "", "detail": ""}\\n')
                except OSError: pass
            os._exit(0)
        """,
    "answers in advance": """
        import os
        for number in range(3, 64):
            for answer in (b'{"value": true}\\n', b'{"value": ["object", 0]}\\n'):
                try: os.write(number, answer * 20)
                except OSError: pass
        def double(x): return True
        """,
    "an answer that is no value": """
        import values
        values.encode = lambda *_: ["__import__", "os"]
        def double(x): return 1
        """,
    "an answer that is no message": """
        import messages
        messages.write = lambda *_: "passed\\n"
        def double(x): return 1
        """,
    "built-ins": """
        import builtins
        class Never(BaseException): pass
        builtins.AssertionError = Never
        builtins.abs = builtins.len = lambda *_: 0
        builtins.isinstance = lambda *_: True
        def double(x): return 0
        """,
    "a helper of the tests": "def helper(x): return 0\ndef double(x): return x",
    "check itself": "def check(candidate): return True\ndef double(x): return x",
    "equal to all": """
        class Same:
            def __eq__(self, other): return True
            __hash__ = None
            def __bool__(self): return True
        def double(x): return Same()
        """,
    "an int equal to all": """
        class Same(int):
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            def __sub__(self, other): return 0
            __hash__ = int.__hash__
        def double(x): return Same(1)
        """,
    "a text equal to all": """
        class Same(str):
            def __eq__(self, other): return True
            __hash__ = str.__hash__
        def double(x): return Same("x")
        """,
    "a list equal to all": """
        class Same(list):
            def __eq__(self, other): return True
        def double(x): return Same([1])
        """,
    "of a class that claims another": """
        class Same:
            __class__ = int
            def __eq__(self, other): return True
        def double(x): return Same()
        """,
    "frames and garbage": """
        import gc, sys
        def double(x):
            frame = sys._getframe()
            while frame:
                for name, value in list(frame.f_globals.items()):
                    if "verdict" in name or "check" in name: frame.f_globals[name] = lambda *_: True
                frame = frame.f_back
            for thing in gc.get_objects():
                if isinstance(thing, dict) and "tests" in thing: return thing["tests"]
            return 0
        """,
    "tracing": """
        import sys, threading
        def trace(frame, event, argument):
            frame.f_trace_lines = True
            return trace
        sys.settrace(trace); threading.settrace(trace)
        def double(x): return 0
        """,
    "import hooks": """
        import sys
        class Hook:
            def find_spec(self, name, path=None, target=None): raise SystemExit(0)
        sys.meta_path.insert(0, Hook())
        sys.modules["values"] = sys.modules["json"] = sys.modules["__main__"] = None
        def double(x):
            import math
        """,
    "modules": """
        import sys
        for module in list(sys.modules.values()):
            for name in ("read", "decode", "_answer", "main"):
                if hasattr(module, name):
                    try: setattr(module, name, lambda *_, **__: {"value": True})
                    except (AttributeError, TypeError): pass
        def double(x): return True
        """,
    "reading the tests": """
        import glob, os
        found = ""
        for pattern in ("/box/*", "/tmp/*", "/tmp/*/*", "../*/*", "/proc/*/cwd/*", "/proc/*/fd/*",
                        "/proc/*/environ", "/proc/*/root/box/*"):
            for path in glob.glob(pattern):
                try: found += os.read(os.open(path, os.O_NONBLOCK), 100_000).decode("latin-1")
                except OSError: pass
        if "".join(("helper(", "candidate")) in found:  # which its own source has not
            def double(x): return x * 2
        else:
            def double(x): return None
        """,
    "threads": """
        import os, threading
        def noise():
            while True:
                for number in range(3, 16):
                    try: os.write(number, b'{"value": 4}\\n')
                    except OSError: pass
        threading.Thread(target=noise, daemon=True).start()
        def double(x): return 4
        """,
    "two processes": "import os\nos.fork()\ndef double(x): return 4",
    "killing everyone": """
        import os, signal
        def double(x):
            for pid in (-1, 0, os.getppid(), 1):
                try: os.kill(pid, signal.SIGKILL)
                except OSError: pass
        """,
    "an endless iterator": "import itertools\ndef double(x): return itertools.count()",
    "an endless value": "def double(x):\n    a = []\n    a.append(a)\n    return a",
    "a huge value": "def double(x): return 'x' * 20_000_000",
    "an endless repr": """
        class Long(Exception):
            def __repr__(self): return repr(self)
            def __str__(self): return str([self])
        def double(x): raise Long()
        """,
    "not a number": "def double(x): return float('nan')",
    "not implemented": "def double(x): return NotImplemented",
    "complex": "def double(x): return complex(4, 4)",
    "all values in one": "def double(x): return {4, 5.0, 'abab'}",
    "a method": "class C:\n    def double(self, x): return x * 2",
    "a property": "class C:\n    @property\n    def double(self): return 4\ndouble = C().double",
    "a coroutine": "async def double(x): return x * 2",
    "the class itself": "class double:\n    def __init__(self, x): self.x = x * 2",
    "a generator that never ends": """
        def double(x):
            while True: yield 4
        """,
    "an error that cannot be shown": """
        class Bad(BaseException):
            def __str__(self): raise SystemExit
            __repr__ = __str__
        Bad.__name__ = "AssertionError"
        def double(x): raise Bad
        """,
    "a name that lies": """
        class Meta(type):
            __name__ = property(lambda self: 5 / 0)
        class Bad(Exception, metaclass=Meta): pass
        def double(x): raise Bad
        """,
    "a value that changes while it is read": """
        class Many(list):
            def __iter__(self): return iter([4, 5.0, "abab"])
            def __len__(self): return 2
        def double(x): return Many()
        """,
    "an object of truth": """
        class Yes:
            def __bool__(self): return True
            def __sub__(self, other): return 0
            __rsub__ = __abs__ = __sub__
            def __lt__(self, other): return True
            __gt__ = __le__ = __ge__ = __contains__ = __lt__
            def __len__(self): return 2
            def __getattr__(self, name): return self
            def __call__(self, *_): return self
        def double(x): return Yes()
        """,
    "pickles": """
        class Bomb:
            def __reduce__(self): return (print, ("passed",))
        def double(x): return Bomb()
        """,
    "forged kinds": """
        import values
        values.encode = lambda *_: ["with", [["helper", ["dict"]]], ["instance", 0]]
        def double(x): return 1
        """,
    "arguments changed in turn": """
        import values
        old = values.encode
        values.encode = lambda *_: None if _[0] is None else ["tuple", ["list", 1, 1]]
        def double(x): return None
        """,
    "more answers than calls": """
        import messages
        messages.write = lambda message: '{"value": 4}\\n' * 5
        def double(x): return 4
        """,
    "reading the calls that come": """
        import os
        def double(x):
            for number in range(16):
                try: os.read(number, 1 << 16) if not os.set_blocking(number, False) else 0
                except OSError: pass
            return 4
        """,
    "both ends of the pipes": """
        import os
        for number in range(3, 16):
            for flags in (os.O_RDONLY, os.O_WRONLY):
                try: end = os.open(f"/proc/self/fd/{number}", flags | os.O_NONBLOCK)
                except OSError: continue
                if flags: os.write(end, b'{"value": 4}\\n{"outcome": "passed", "number": "0"}\\n')
        def double(x): return 4
        """,
    "a crash": "import ctypes\ndef double(x): ctypes.string_at(0)",
    "a stack that overflows": """
        import sys, threading
        sys.setrecursionlimit(10 ** 9)
        def double(x): return double(x)
        """,
    "stopping itself": """
        import os, signal
        def double(x): os.kill(os.getpid(), signal.SIGSTOP)
        """,
    "a bomb with a fuse": """
        import atexit, os, signal, sys, threading, time
        def late():
            while True:
                time.sleep(0.001)
                sys.setswitchinterval(1e-6)
        threading.Thread(target=late, daemon=True).start()
        atexit.register(os._exit, 0)
        for number in range(1, 32):
            try: signal.signal(number, lambda *_: os._exit(0))
            except (OSError, ValueError): pass
        def double(x): return 4
        """,
    "waiting": "import time\ndef double(x): time.sleep(1e6)",
}
ENDLESS = ("waiting", "stopping itself", "a stack that overflows")
"""These never answer."""

"""The sandbox: runs untrusted programs, and computes code rewards that they cannot fake.

1. `Sandbox.run` starts one Python program in a fresh process: without network, with a private
   folder as the only place to write, without environment variables or descriptors of this process,
   with limits on time, memory, files, processes and output (`SandboxParameters`).
2. A supervisor (`inside.supervise`) watches the program. It kills everything that the program
   started when the program ends or passes a limit, and when this process gives up or dies.
3. `isolation` finds out once, by trying attacks, how well this machine can isolate (`Level`).
   Without isolation nothing runs, unless ``isolation: none`` is set.
4. `run_tests` checks a solution by hidden tests. They run in a second sandbox and get only values.

What each level guarantees, strongest first:

* **bubblewrap** and **namespaces**: the program has a process table of its own, an empty network,
  and a root folder with the interpreter, system libraries and programs, read-only and without
  installed packages. If root starts it, each run is another user.
* **rlimits**: no namespaces. Landlock refuses to open any other file, seccomp refuses signals to
  other processes.
* All three: resource limits, no privileges, and seccomp, which refuses sockets and the system calls
  that exploits use.

What the levels do *not* protect against:

* All: bugs of the kernel, which is shared; side channels of the processor; a slower machine while a
  program runs (within its limits); reading the system's own programs and libraries.
* **rlimits**, in addition: `stat` shows that a file exists, its size and times. A deleted file that
  the program holds open does not count as disk use. The size of its folder and its total memory are
  measured only every 20 ms or more. Without Landlock (before Linux 5.13) it can read and change
  what this user can; `isolation` reports that, and `run_tests` refuses it unless the level is set
  by name. As root, the level needs an interpreter that other users can read, because the program
  becomes another user.
* **none**: everything except a program that does not end. There is a time limit, there are resource
  limits, and child processes are found through their parents; nothing else.
"""

from agent_r1.tools.sandbox.levels import Isolation, isolation
from agent_r1.tools.sandbox.parameters import Level, SandboxParameters
from agent_r1.tools.sandbox.result import (
    SandboxError,
    SandboxResult,
    SandboxUnavailable,
    Status,
    TestsUnusable,
    Verdict,
)
from agent_r1.tools.sandbox.sandbox import Sandbox
from agent_r1.tools.sandbox.verdict import run_tests

__all__ = [
    "Isolation",
    "Level",
    "Sandbox",
    "SandboxError",
    "SandboxParameters",
    "SandboxResult",
    "SandboxUnavailable",
    "Status",
    "TestsUnusable",
    "Verdict",
    "isolation",
    "run_tests",
]

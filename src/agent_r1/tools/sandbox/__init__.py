"""The sandbox: programs that nobody trusts, and code rewards that they cannot fake.

1. `Sandbox.run` starts one Python program in a fresh process: no network, a private folder to
   write to, nothing else to write to, no environment variables or descriptors of this process,
   limits on time, memory, files, processes and output (`SandboxParameters`).
2. A supervisor (`inside.supervise`) stands above the program. Whatever the program starts is killed
   when it ends, runs out of a limit, or when this process gives up or dies.
3. `isolation` finds out once, by attacks of its own, how well this machine can do that (`Level`).
   Without any isolation nothing runs, unless ``isolation: none`` is asked for.
4. `run_tests` tests a solution by hidden tests, which run in a second sandbox and see only values.

What holds at each level, strongest first:

* **bubblewrap** and **namespaces**: the program sees its own processes, a network of nothing, and a
  root that has the interpreter, system libraries and programs, read-only and without installed
  packages. Started by root, it is another user in each run.
* **rlimits**: no namespaces; Landlock refuses opening any other file, seccomp signals to others.
* At all three, limits, no privileges, and seccomp, which refuses sockets and what exploits use.

What they do *not* protect against:

* at all levels: faults of the kernel, which is shared; side channels of the processor; a slower
  machine while a program runs (within its limits); reading the system's own programs and libraries.
* **rlimits** also: it can see by `stat` that a file exists, its size and times; a deleted file that
  it holds open does not count on the disk, and the size of its folder and its memory together are
  only measured every 20 ms or more; without Landlock (before Linux 5.13) it can read and change
  what this user can, which `isolation` reports, and `run_tests` refuses unless asked. As root the
  level needs an interpreter that others can read, because the program becomes another user.
* **none**: everything but forgetting to end. It has a time limit and resource limits, its children
  are looked for by their parents, and that is all.
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

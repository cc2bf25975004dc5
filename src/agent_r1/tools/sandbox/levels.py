"""Which level of isolation this machine supports: found out once, by trying.

1. Each level runs a program that tries what must fail: open a socket, read a file of this user,
   write next to it, look at this process. If any of that works, the level is not offered, whatever
   the kernel's version says.
2. ``auto`` is the strongest level that is offered. `Level.NONE` must be set by name.
"""

from __future__ import annotations

import compileall
import functools
import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from agent_r1.tools.sandbox.layout import unprivileged_user
from agent_r1.tools.sandbox.parameters import Level, SandboxParameters
from agent_r1.tools.sandbox.process import Confined
from agent_r1.tools.sandbox.result import SandboxError, SandboxUnavailable

_PROBE = """
import json, os, socket, sys
def works(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True
secret, parent = sys.stdin.read().split("\\n")
print(json.dumps({
    "network": works(socket.socket),
    "files": works(lambda: open(secret).close()),
    "writing": works(lambda: open(secret + ".new", "w").close()),
    "processes": works(lambda: os.kill(int(parent), 0)),
    "memory of others": works(lambda: open("/proc/" + parent + "/mem", "rb").close()),
}))
"""
_MAY_BE_OPEN = {Level.RLIMITS: {"files"}}
"""Without Landlock (before Linux 5.13) limits alone do not hide what the user can read."""
_REMEDY = (
    "Install bubblewrap 0.8 or later (apt install bubblewrap), allow unprivileged user namespaces "
    "(sysctl user.max_user_namespaces, and kernel.apparmor_restrict_unprivileged_userns=0 on "
    "Ubuntu), or, only if every program is trusted, set isolation: none."
)

logger = logging.getLogger(__name__)


class Isolation(NamedTuple):
    """What one level gives on this machine."""

    level: Level
    hides_files: bool
    """Whether programs cannot read this user's files."""


@functools.cache
def isolation() -> Isolation:
    """The strongest level that this machine supports.

    Raises:
        SandboxUnavailable: no level works; the message says why for each, and gives a remedy.
    """
    reasons = []
    for level in Level:
        if level is Level.NONE:
            continue
        try:
            return probe(level)
        except (SandboxUnavailable, SandboxError) as error:
            reasons.append(f"{level}: {error}")
    raise SandboxUnavailable(
        "this machine cannot isolate programs. " + "; ".join(reasons) + ". " + _REMEDY
    )


def level_for(parameters: SandboxParameters) -> Level:
    """The level that ``parameters`` ask for.

    Raises:
        SandboxUnavailable: this machine does not support it.
    """
    if parameters.isolation == "auto":
        return isolation().level
    if parameters.isolation is Level.NONE:
        return Level.NONE
    try:
        return probe(parameters.isolation).level
    except SandboxError as error:
        raise SandboxUnavailable(f"isolation '{parameters.isolation}': {error} {_REMEDY}") from None


@functools.cache
def probe(level: Level) -> Isolation:
    """Try a level.

    Raises:
        SandboxUnavailable: it is not available, or does not isolate; the message says why.
        SandboxError: it failed to start.
    """
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailable(f"it needs Linux, and this is {sys.platform}")
    if level is Level.RLIMITS and os.geteuid() == 0 and unprivileged_user() is None:
        raise SandboxUnavailable("as root it needs another user, which does not exist here")
    compileall.compile_dir(str(Path(__file__).parent / "inside"), quiet=2)  # starts faster
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder, "secret")
        secret.write_text("secret")
        secret.chmod(0o644)
        Path(folder).chmod(0o755)
        worked = _attempts(level, secret)
    open_ways = {name for name, open_way in worked.items() if open_way}
    if open_ways - _MAY_BE_OPEN.get(level, set()):
        raise SandboxUnavailable(f"it does not keep programs from: {', '.join(sorted(open_ways))}")
    if "files" in open_ways:
        logger.warning("sandbox: this kernel has no Landlock; programs can read this user's files")
    return Isolation(level, "files" not in open_ways)


def _attempts(level: Level, secret: Path) -> dict[str, bool]:
    with Confined(level, {"main.py": _PROBE}, SandboxParameters()) as confined:
        ended = confined.finish(f"{secret}\n{os.getpid()}".encode())
    if ended.status != "ok":
        said = ended.stderr.decode("utf-8", "replace").strip()
        raise SandboxUnavailable(
            f"programs do not run at this level ({ended.status}: {said[-300:]})"
        )
    return json.loads(ended.stdout)

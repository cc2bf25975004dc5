"""How a program starts at each level: the command line and the specification that it gets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_r1.tools.sandbox.layout import (
    WRITABLE_DEVICES,
    layout,
    unprivileged_user,
    without_hidden,
)
from agent_r1.tools.sandbox.parameters import Level, SandboxParameters
from agent_r1.tools.sandbox.result import SandboxUnavailable
from agent_r1.tools.unicode import valid_unicode

MAIN = "main.py"
"""The program's file name in its private folder."""
PRIVATE = "/box"
"""The private folder at levels with their own file system; ``/tmp`` links to it."""

_PACKAGE = Path(__file__).parent
_START = (
    "import sys; sys.path.insert(0, sys.argv[2]); "
    "from inside.start import main; main(int(sys.argv[1]))"
)
_CAPABILITIES = ("CHOWN", "DAC_READ_SEARCH", "KILL", "SETGID", "SETPCAP", "SETUID")
"""What the supervisor keeps as root in bubblewrap: to switch users, to measure and to kill."""


def command(level: Level, control: int, parameters: SandboxParameters) -> list[str]:
    """The command line of the process to start.

    It inherits ``control``, the descriptor of its control socket.

    Raises:
        SandboxUnavailable: the level is bubblewrap, which is not installed.
    """
    if level is not Level.BUBBLEWRAP:
        return _python(control, str(_PACKAGE))
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxUnavailable("bwrap is not installed; install the package bubblewrap")
    return [program, *_bubblewrap(parameters), "--", *_python(control, "/sandbox")]


def _python(control: int, package: str) -> list[str]:
    return [layout().interpreter, "-I", "-S", "-B", "-c", _START, str(control), package]


def _bubblewrap(parameters: SandboxParameters) -> list[str]:
    apart = ["pid", "net", "ipc", "uts"]
    options = [f"--unshare-{kind}" for kind in apart] + ["--unshare-cgroup-try"]
    if os.geteuid() == 0:
        options += ["--cap-drop", "ALL"]
        for capability in _CAPABILITIES:
            options += ["--cap-add", f"CAP_{capability}"]
    else:
        options += ["--unshare-user"]
    options += ["--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"]
    # bubblewrap makes parent folders for its own user alone; the program is another user.
    for parent in _parents([*layout().readable, "/dev/null", "/sandbox/inside", PRIVATE]):
        options += ["--perms", "0755", "--dir", parent]
    for path in layout().readable:
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        else:
            options += ["--ro-bind", path, path]
    for path in layout().hidden:
        options += ["--size", "4096", "--tmpfs", path, "--remount-ro", path]
    for name in ("null", "full", "random", "urandom"):
        options += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    options += ["--symlink", "/proc/self/fd", "/dev/fd", "--symlink", PRIVATE, "/dev/shm"]
    options += ["--proc", "/proc"]
    options += ["--ro-bind", str(_PACKAGE / "inside"), "/sandbox/inside"]
    options += ["--perms", "0700", "--size", str(parameters.disk_mb << 20), "--tmpfs", PRIVATE]
    if not any(path.startswith("/tmp/") for path in layout().readable):
        options += ["--symlink", PRIVATE, "/tmp"]
    return [*options, "--remount-ro", "/", "--chdir", PRIVATE]


def _parents(paths: list[str]) -> list[str]:
    parents = {str(parent) for path in paths for parent in Path(path).parents}
    return sorted(parents - {"/"} - set(paths))


def specification(
    level: Level, folder: str, files: Mapping[str, str], parameters: SandboxParameters
) -> dict[str, Any]:
    """What the process gets over its control socket; see `inside.start`.

    Raises:
        ValueError: the name of a file leads out of the private folder.
    """
    shown = layout()
    readable, listable = list(shown.readable), list[str]()
    if level is Level.RLIMITS:
        readable, listable = without_hidden(shown)
    return {
        "level": str(level),
        "folder": folder,
        "files": {_checked(name): valid_unicode(text) for name, text in files.items()},
        # Imports come from the private folder, not from installed packages or bytecode files.
        "command": [shown.interpreter, "-s", "-S", "-B", "-X", "utf8", MAIN],
        "environment": {
            "HOME": folder,
            "TMPDIR": folder,
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",  # sets print in the same order in every run
            "PYTHONUNBUFFERED": "1",  # what is printed before the time limit is kept
        },
        "user": None if level is Level.NONE else unprivileged_user(),
        "readable": readable,
        "hidden": list(shown.hidden),
        "listable": listable,
        "writable": [folder, *WRITABLE_DEVICES],
        "limits": parameters.model_dump(mode="json"),
    }


def _checked(name: str) -> str:
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise ValueError(f"file '{name}': the name must be a path within the private folder")
    return str(path)

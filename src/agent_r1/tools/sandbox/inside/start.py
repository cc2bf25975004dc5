"""Entry point: ``python -I -S -B -c … DESCRIPTOR``. Reads what to run from the control socket.

The caller sends one JSON object as a line; see `agent_r1.tools.sandbox.process`. At level
``bubblewrap`` this process is already inside; at ``namespaces`` it enters them.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

# Import everything now: inside, the files of this package are out of reach.
from . import confine, namespaces, supervise  # noqa: F401


def main(descriptor: int) -> None:
    """Run what the caller asks for; report an error that comes before the program starts."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    try:
        spec = _read(control)
        if spec["level"] == "namespaces":
            namespaces.enter(spec, control.close)
        os.chdir(spec["folder"])
        _write_files(spec)
        supervise.run(spec, control)
    except (OSError, ValueError) as error:
        supervise.send(control, failed=f"{type(error).__name__}: {error}")


def _read(control: socket.socket) -> dict[str, Any]:
    """The first line; after it, the socket only shows whether the caller is still there."""
    text = bytearray()
    while not text.endswith(b"\n"):
        part = control.recv(1 << 16)
        if not part:
            raise OSError("the caller is gone")
        text += part
    return json.loads(text)


def _write_files(spec: dict[str, Any]) -> None:
    folder = spec["folder"]
    for name, text in spec["files"].items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    user = spec["user"]
    if user is not None:
        for parent, _, files in os.walk(folder, topdown=False):
            for name in files:
                os.chown(os.path.join(parent, name), user, user)
            os.chown(parent, user, user)

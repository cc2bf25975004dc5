"""What a result depends on besides inputs and parameters: code, libraries, device."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import agent_r1
from agent_r1.storage.hashing import file_sha256

LIBRARIES = (
    "bm25s", "deepspeed", "gymnasium", "jinja2", "kedro", "mcp", "numpy", "pandas", "pyarrow",
    "pydantic", "reasoning-gym", "safetensors", "textworld", "tokenizers", "torch", "transformers",
)  # fmt: skip
"""The libraries whose version can change a result."""


@cache
def code_version(project: Path) -> dict[str, Any]:
    """Which code runs: package version, sha256 of the sources, and the git commit if there is one.

    The sources are the package and the user's own modules beside it in the project's ``src``:
    environments, tools and reward terms decide results too. Read once per process, because the
    code does not change during a run.
    """
    version: dict[str, Any] = {
        "version": agent_r1.__version__,
        "source_sha256": _source_sha256(Path(agent_r1.__file__).parent, project / "src"),
        "commit": _git(project, "rev-parse", "HEAD"),
    }
    changes = _git(project, "status", "--porcelain")
    version["dirty"] = None if changes is None else bool(changes)
    return version


def _source_sha256(package: Path, beside: Path) -> str:
    digest = hashlib.sha256()
    own = [(file, package) for end in ("py", "jinja") for file in sorted(package.rglob(f"*.{end}"))]
    others = [(file, beside) for file in sorted(beside.rglob("*.py"))]
    for file, folder in own + [pair for pair in others if package not in pair[0].parents]:
        digest.update(f"{file.relative_to(folder).as_posix()}\t{file_sha256(file)}\n".encode())
    return digest.hexdigest()


def _git(project: Path, *arguments: str) -> str | None:
    """Output of a git command; None without git or without a commit."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=project, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def library_versions() -> dict[str, str]:
    """Installed versions of `LIBRARIES`, and of Python."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def device_name() -> str:
    """What torch computes on; does not import torch.

    Results are comparable between equal devices only, so the name includes the CPU's model.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return f"cpu {_processor()}"
    if torch.cuda.is_available():
        return f"cuda {torch.cuda.get_device_name()}"
    return f"cpu {_processor()}, {torch.get_num_threads()} threads"


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())

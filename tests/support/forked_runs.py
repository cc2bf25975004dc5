"""Many runs of Kedro for the price of one start: a parent that has imported everything, and forks.

Importing torch, transformers, DeepSpeed and MLflow takes many times longer than the run of a node.
So one parent process imports them, and every run is a fork of it, in which Kedro's own entry point
is called. The parent never runs anything itself, and has one thread: what it hands down is code.

The parent reads a request per line, ``{"project", "arguments", "fault", "marker"}``, and answers
each with ``{"returncode", "output"}``, both in JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from tests.support.run_with_fault import run_kedro

TIMEOUT = 120
"""Seconds after which a run is given up."""

_MODULES = (
    "bm25s",
    "deepspeed",
    "kedro.framework.cli",
    "kedro.framework.session.service_session",
    "matplotlib.pyplot",
    "mlflow.tracking",
    "mlflow.store.tracking.sqlalchemy_store",
    "transformers.models.llama.modeling_llama",
    "agent_r1.cli",
    "agent_r1.experiments.replay",
    "agent_r1.experiments.rerun",
    "agent_r1.engines.local",
    *(
        f"agent_r1.pipelines.{name}.pipeline"
        for name in ("prepare_tasks", "demonstrations", "sft", "iteration", "report")
    ),
    "tests.support.fault_injection",
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended."""

    returncode: int
    """Negative: the signal that killed it."""
    output: str
    """What it said, on both streams."""
    struck: str | None
    """The fault that really happened; None if none did."""


class ForkedRuns:
    """The parent, as a context manager, and the runs that it forks."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """``environment``: the environment variables of all runs."""
        self._environment = dict(environment)

    def __enter__(self) -> Self:
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forked_runs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._parent.communicate()

    def run(self, project: Path, arguments: Sequence[str], fault: str | None) -> Ended:
        """``kedro <arguments>`` in the folder ``project``, broken by ``fault``."""
        marker = project / "struck"
        marker.unlink(missing_ok=True)
        request = {"project": str(project), "arguments": list(arguments), "fault": fault}
        self._parent.stdin.write(json.dumps(request | {"marker": str(marker)}) + "\n")
        self._parent.stdin.flush()
        answer = self._parent.stdout.readline()
        assert answer, "the parent of the forked runs has died; its errors stand above"
        struck = marker.read_text(encoding="utf-8") if marker.exists() else None
        return Ended(**json.loads(answer), struck=struck)


def serve() -> None:
    """The parent: answers requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an import prints is no answer
    for module in _MODULES:
        importlib.import_module(module)
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads: a fork would have one of them and all their locks"
    for line in sys.stdin:
        print(json.dumps(_fork(json.loads(line))), file=answers, flush=True)


def _fork(request: Mapping[str, Any]) -> dict[str, Any]:
    # A pipe, and no file: the output is to be read even where no file may grow.
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _become_kedro(request, write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as stream:
        output = stream.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return {"returncode": os.waitstatus_to_exitcode(status), "output": output}


def _become_kedro(request: Mapping[str, Any], output: int) -> NoReturn:
    for stream in (1, 2):
        os.dup2(output, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["project"])
    signal.alarm(TIMEOUT)
    code: Any = 1
    try:
        run_kedro(request["arguments"], request["fault"], Path(request["marker"]))
    except SystemExit as exit_:
        code = exit_.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    serve()

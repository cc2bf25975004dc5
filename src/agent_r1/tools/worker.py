"""Runs in a worker process: reads calls, one JSON object per line, and answers each.

Standard input and output are the connection, so they are moved before a tool can touch them: what a
tool prints goes to standard error, and its standard input is empty. A thread reads the calls. When
they end, the program is gone, and the thread kills the whole process group, even during a call.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import inspect
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any, TextIO

from agent_r1.mdp import EnvironmentFailure
from agent_r1.tools.failures import BadArguments, reason, short
from agent_r1.tools.output import output
from agent_r1.tools.spec import ToolSpec, tool

_scripts: dict[str, ModuleType] = {}
"""File → the module made from it."""


def serve() -> None:
    """Answer calls until the connection ends; never returns."""
    requests, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    calls: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, calls), daemon=True).start()
    me = os.getpid()
    while True:
        request = calls.get()
        answer = _answer(request, answers)
        if os.getpid() != me:  # the tool forked, and this is the child: the call is the parent's
            os._exit(0)
        _send(answers, request, answer)


def _receive(requests: TextIO, calls: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in requests:
        calls.put(json.loads(line))
    os.killpg(0, signal.SIGKILL)


def _send(answers: TextIO, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    answers.write(json.dumps({**answer, "call": request["call"]}) + "\n")
    answers.flush()


def _answer(request: Mapping[str, Any], answers: TextIO) -> dict[str, Any]:
    try:
        spec = _find(request)
        arguments = spec.validate(request["arguments"])
        _send(answers, request, {"began": True})
        value = spec.function(**arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        text, length = output(value, request["kept"])
    except BadArguments as error:
        return {"bad_arguments": str(error)}
    except EnvironmentFailure as failure:
        return {"environment_failure": short(str(failure))}
    except BaseException as error:  # a KeyboardInterrupt by a tool is its failure, too
        return {"failed": reason(error)}
    return {"text": text, "length": length}


def _find(request: Mapping[str, Any]) -> ToolSpec:
    """The tool; a plain function, whose tool has another name, is made one again."""
    file = request["file"]
    module: Any = _script(file) if file else importlib.import_module(request["module"])
    found = functools.reduce(getattr, request["qualname"].split("."), module)
    return found if isinstance(found, ToolSpec) else tool(found)


def _script(file: str) -> ModuleType:
    """The program's main file as a module; its ``if __name__ == "__main__":`` does not run."""
    if file not in _scripts:
        spec = importlib.util.spec_from_file_location("__agent_r1_main__", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        _scripts[file] = module
    return _scripts[file]

"""The process of the tests: runs them against values, and never runs the solution's code.

1. The names that the tests take from the solution are functions here. Each sends its call to the
   other process and returns what `values.decode` makes of the answer (`channel`).
2. Code of the task (``prelude``: imports, functions and classes of a prompt) runs here: the
   solution cannot replace a function that the tests check it with, and the task's own class
   compares its objects. Built-ins and standard library modules are this process's, too. Only the
   entry point is always the solution's.
3. Objects of classes that the tests expect a solution to define (``classes``) stay with the
   solution, and are used from here by number (`channel.Handle`). In all other tasks an object of
   the solution can only be passed on.
4. If the tests define ``check(candidate)`` (HumanEval), it is called. Otherwise the tests are
   statements (MBPP).
5. The verdict goes to the caller with the caller's number, which only this process knows.
"""

from __future__ import annotations

import builtins
import importlib
import json
import os
import signal
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .channel import Channel, SolutionGone, Unusable
else:  # in the private folder, next to this file
    from channel import Channel, SolutionGone, Unusable


def verdict_of(task: dict[str, Any], channel: Channel) -> tuple[str, str]:
    """(outcome, detail) of the tests; see `main` for the outcomes."""
    names: dict[str, Any] = {"__name__": "tests"}
    try:
        exec(compile(task["prelude"], "prelude", "exec"), names)
        channel.own = {
            name: value
            for name, value in names.items()
            if isinstance(value, type) and value.__module__ == names["__name__"]
        }
        code = compile(task["tests"], "tests", "exec")
        _bind(code, names, channel, task["entry_point"])
        return _run(code, names, channel, task["entry_point"])
    except Unusable as error:
        return "unusable", str(error)
    except (Exception, SystemExit) as error:
        return "unusable", f"{type(error).__name__}: {error}"


def _run(
    code: types.CodeType, names: dict[str, Any], channel: Channel, entry_point: str | None
) -> tuple[str, str]:
    other_check = names.get("check")  # the task's, or the solution's
    try:
        exec(code, names)
        if entry_point and names.get("check") is not other_check:
            names["check"](names[entry_point])
    except SolutionGone:
        return "gone", channel.gone
    except Exception as error:
        if error is channel.raised:
            return "raised", type(error).__name__
        if channel.made == 0:
            raise
        return "wrong", type(error).__name__
    if channel.gone:  # a bare except in the tests caught it
        return "gone", channel.gone
    if channel.made == 0:
        raise Unusable("the tests never call the solution")
    return "passed", ""


def _bind(
    code: types.CodeType, names: dict[str, Any], channel: Channel, entry_point: str | None
) -> None:
    for name in sorted(_names_in(code) - set(names) - set(dir(builtins))):
        if name in sys.stdlib_module_names:
            names[name] = importlib.import_module(name)
        else:
            names[name] = channel.function(name)
    if entry_point:
        names[entry_point] = channel.function(entry_point)


def _names_in(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names_in(constant)
    return found


def main() -> None:
    """Test by ``task.json``: ``passed``, ``wrong``, ``raised``, ``gone``, or ``unusable``."""
    answers = os.fdopen(os.dup(0), encoding="utf-8", errors="surrogatepass")
    calls = os.fdopen(os.dup(1), "w", encoding="utf-8")
    verdict = os.fdopen(os.dup(2), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silence, stream)
    with open("task.json", encoding="utf-8") as file:
        task = json.load(file)
    channel = Channel(calls, answers, task["timeout_s"], handles=bool(task["classes"]))
    signal.signal(signal.SIGALRM, channel.out_of_time)
    outcome, detail = verdict_of(task, channel)
    signal.setitimer(signal.ITIMER_REAL, 0)
    verdict.write(json.dumps({"number": task["number"], "outcome": outcome, "detail": detail}))
    verdict.flush()


if __name__ == "__main__":
    main()

"""The process of the tests: runs them against values, and never runs the solution's code.

1. The names that the tests take from the solution are functions here that send the call to the
   other process and give what `values.decode` makes of the answer.
2. Code that the task gives (``prelude``: imports and functions of a prompt) is the task's own here:
   the solution cannot replace a function that the tests check it with. Built-ins and modules of
   the standard library are this process's, too; only the entry point is always the solution's.
3. ``check(candidate)`` is called if the tests define it (HumanEval); else the tests are
   statements (MBPP).
4. The verdict goes to the caller with the number that it gave, which only this process knows.
"""

from __future__ import annotations

import builtins
import importlib
import json
import os
import signal
import sys
import types
from collections.abc import Callable
from typing import Any, TextIO

import values  # type: ignore[import-not-found]  # lies beside this file in the private folder


class SolutionGone(BaseException):
    """No answer will come. Not an Exception: tests that expect one must not take this for it."""


class Unusable(BaseException):
    """The tests themselves are at fault."""


class Channel:
    """Calls to the solution."""

    def __init__(self, calls: TextIO, answers: TextIO, timeout_s: float):
        self._calls = calls
        self._answers = answers
        self._timeout_s = timeout_s
        self.made = 0
        self.gone = ""
        self.raised: BaseException | None = None
        """The last exception that the solution raised."""

    def function(self, name: str) -> Callable[..., Any]:
        """The solution's function of that name."""

        def call(*arguments: Any, **keywords: Any) -> Any:
            return self._call(name, arguments, keywords)

        return call

    def out_of_time(self, *_: object) -> None:
        """Handler of the alarm that the first call sets."""
        self.gone = f"it took longer than {self._timeout_s:g} s"
        raise SolutionGone

    def _call(self, name: str, arguments: tuple, keywords: dict[str, Any]) -> Any:
        if self.gone:
            raise SolutionGone
        sent = {
            "name": name,
            "arguments": values.encode(arguments, _number),
            "keywords": values.encode(keywords, _number),
        }
        if self.made == 0:  # the solution's process has started: from now on it is its time
            signal.setitimer(signal.ITIMER_REAL, self._timeout_s)
        self.made += 1
        try:
            self._calls.write(values.write(sent))
            self._calls.flush()
            line = self._answers.readline(values.MAX_CHARS)
            if not line.endswith("\n"):
                raise EOFError("the answer is too long" if len(line) > 1 << 20 else "")
            answer = values.read(line)
            if "value" in answer:
                return values.decode(answer["value"])
        except (OSError, EOFError, ValueError) as error:
            gone = isinstance(error, OSError) or not str(error)
            self.gone = "it ended before it had answered" if gone else str(error)
            raise SolutionGone from None
        self.raised = _exception(answer.get("raised"), answer.get("message"))
        raise self.raised


def _number(value: Any) -> int:
    if isinstance(value, values.Opaque):
        return value.number
    raise Unusable(f"the tests pass a {type(value).__name__}, which cannot be sent")


def _exception(name: Any, message: Any) -> Exception:
    """The built-in exception of that name, so that tests can expect it."""
    kind = getattr(builtins, name, None) if isinstance(name, str) else None
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(str(message))
        except TypeError:  # UnicodeDecodeError and others that want more
            pass
    return RuntimeError(f"{name}: {message}"[:300])


def judge(task: dict[str, Any], channel: Channel) -> tuple[str, str]:
    """(outcome, detail) of the tests; see `main` for the outcomes."""
    names: dict[str, Any] = {"__name__": "tests"}
    try:
        exec(compile(task["prelude"], "prelude", "exec"), names)
        code = compile(task["tests"], "tests", "exec")
        given = set(names)
        _bind(code, names, channel, task["entry_point"])
        return _run(code, names, channel, task["entry_point"], given)
    except Unusable as error:
        return "unusable", str(error)
    except (Exception, SystemExit) as error:
        return "unusable", f"{type(error).__name__}: {error}"


def _run(
    code: types.CodeType,
    names: dict[str, Any],
    channel: Channel,
    entry_point: str | None,
    given: set[str],
) -> tuple[str, str]:
    try:
        exec(code, names)
        if entry_point and "check" in names and "check" not in given:
            names["check"](names[entry_point])
    except SolutionGone:
        return "gone", channel.gone
    except Exception as error:
        if error is channel.raised:
            return "raised", type(error).__name__
        if channel.made == 0:
            raise
        return "wrong", type(error).__name__
    if channel.gone:  # a bare except in the tests
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
    """Judge ``task.json``: ``passed``, ``wrong``, ``raised``, ``gone``, or ``unusable``."""
    answers = os.fdopen(os.dup(0), encoding="utf-8", errors="surrogatepass")
    calls = os.fdopen(os.dup(1), "w", encoding="utf-8")
    verdict = os.fdopen(os.dup(2), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silence, stream)
    with open("task.json", encoding="utf-8") as file:
        task = json.load(file)
    channel = Channel(calls, answers, task["timeout_s"])
    signal.signal(signal.SIGALRM, channel.out_of_time)
    outcome, detail = judge(task, channel)
    signal.setitimer(signal.ITIMER_REAL, 0)
    verdict.write(json.dumps({"number": task["number"], "outcome": outcome, "detail": detail}))
    verdict.flush()


if __name__ == "__main__":
    main()

"""The process of the solution: runs it, and answers calls of its functions.

Nothing here is trusted. The solution can change all of this code; what it can reach by that is to
write other answers, and any answer is only a value, judged elsewhere. It does not have the tests.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

import values  # type: ignore[import-not-found]  # lies beside this file in the private folder


def main() -> None:
    """Run ``solution.txt``, then answer one call per line until the calls end."""
    calls = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # what it prints is nobody's business, and no answer
        os.dup2(silence, stream)
    with open("solution.txt", encoding="utf-8", newline="") as file:
        source = file.read()
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    objects: list[Any] = []
    failure = None
    try:
        exec(compile(source, "solution.py", "exec"), module.__dict__)
    except BaseException as error:  # also exit(): the calls are then answered with it
        failure = error
    for line in calls:
        answers.write(values.write(_answer(line, module, objects, failure)))
        answers.flush()


def _answer(
    line: str, module: types.ModuleType, objects: list[Any], failure: BaseException | None
) -> dict[str, Any]:
    def number_of(value: Any) -> int:
        objects.append(value)
        return len(objects) - 1

    try:
        if failure is not None:
            raise failure
        call = values.read(line)
        arguments = values.decode(call["arguments"], objects.__getitem__)
        keywords = values.decode(call["keywords"], objects.__getitem__)
        if call["name"] not in module.__dict__:
            raise NameError(f"name '{call['name']}' is not defined")
        value = module.__dict__[call["name"]](*arguments, **keywords)
        return {"value": values.encode(value, number_of)}
    except BaseException as error:
        return {"raised": type(error).__name__, "message": _text(error)}


def _text(error: BaseException) -> str:
    try:
        return str(error)[:200]
    except Exception:
        return ""


if __name__ == "__main__":
    main()

"""The process of the solution: runs it, and answers calls of its functions.

Nothing here is trusted. The solution can change all of this code, but then it can only write other
answers, and any answer is only a value, checked elsewhere. The tests are not in this process.
"""

from __future__ import annotations

import operator
import os
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import messages, values
else:  # in the private folder, next to this file
    import messages
    import values

_OPERATIONS = {
    ".getattr": getattr,
    ".setattr": setattr,
    ".call": operator.call,
    ".bool": bool,
    ".len": len,
    ".str": str,
    ".repr": repr,
    ".iter": iter,
    ".getitem": operator.getitem,
    **{f".{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "gt", "le", "ge")},
}
"""What the tester does with an object by its number. A function's name cannot have the dot."""


class Objects:
    """The objects that the tester refers to by number; an object keeps its number."""

    def __init__(self) -> None:
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}

    def known_as(self, value: Any) -> tuple[int, bool]:
        """The number of an object, new if it has none yet, and its truth at this moment."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return self._numbers[id(value)], _truth(value)

    def of(self, number: int, truth: bool) -> Any:
        """The object of that number."""
        return self._objects[number]


def main() -> None:
    """Run ``solution.txt``, then answer one call per line until the calls end."""
    calls = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # what the solution prints is not an answer
        os.dup2(silence, stream)
    with open("solution.txt", encoding="utf-8", newline="") as file:
        source = file.read()
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    objects = Objects()
    failure = None
    try:
        exec(compile(source, "solution.py", "exec"), module.__dict__)
    except BaseException as error:  # exit(), too: every call is then answered with it
        failure = error
    for line in calls:
        answers.write(messages.write(_answer(line, module, objects, failure)))
        answers.flush()


def _answer(
    line: str, module: types.ModuleType, objects: Objects, failure: BaseException | None
) -> dict[str, Any]:
    try:
        if failure is not None:
            raise failure
        call = messages.read(line)
        names = module.__dict__
        own = {name: names[name] for name in call["own"] if isinstance(names.get(name), type)}
        arguments = values.decode(call["arguments"], objects.of, own)
        keywords = values.decode(call["keywords"], objects.of, own)
        name = call["name"]
        if name not in names and name not in _OPERATIONS:
            raise NameError(f"name '{name}' is not defined")
        value = (_OPERATIONS.get(name) or names[name])(*arguments, **keywords)
        answer = {"value": values.encode(value, objects.known_as, own)}
        if value is None:  # then the changed arguments may be the answer
            answer["arguments"] = values.encode(arguments, objects.known_as, own)
        return answer
    except BaseException as error:
        return {"raised": type(error).__name__, "message": _text(error)}


def _truth(value: Any) -> bool:
    try:
        return bool(value)
    except Exception:  # it has no truth value
        return True


def _text(error: BaseException) -> str:
    try:
        return str(error)[:200]
    except Exception:
        return ""


if __name__ == "__main__":
    main()

"""The tester's side of the calls between two processes: what a call sends, and what may come back.

Every answer is a plain value, an object of the task's own classes that is rebuilt here, a number
that refers to an object of the solution, or an exception of a known class. None of them is code.
"""

from __future__ import annotations

import builtins
import collections
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from . import messages, values
else:  # in the private folder, next to this file
    import messages
    import values


class SolutionGone(BaseException):
    """No answer will come. Not an Exception, so that tests that expect one do not catch it."""


class Unusable(BaseException):
    """The tests themselves are at fault: no solution could pass them."""


class Channel:
    """Calls to the solution."""

    def __init__(self, calls: TextIO, answers: TextIO, timeout_s: float, *, handles: bool):
        self._calls = calls
        self._answers = answers
        self._timeout_s = timeout_s
        self._handles = handles
        self._objects: dict[int, values.Opaque] = {}
        self.own: dict[str, type] = {}
        """Name → class, for the classes that the task defines."""
        self.made = 0
        self.gone = ""
        self.raised: BaseException | None = None
        """The last exception that the solution raised."""

    def function(self, name: str) -> Callable[..., Any]:
        """The solution's function of that name."""
        return lambda *arguments, **keywords: self.call(name, arguments, keywords)

    def out_of_time(self, *_: object) -> None:
        """Handler of the alarm that the first call sets."""
        self.gone = f"it took longer than {self._timeout_s:g} s"
        raise SolutionGone

    def call(self, name: str, arguments: tuple, keywords: dict[str, Any] | None = None) -> Any:
        """The answer to one call. A name with a leading dot is an operation on an object."""
        if self.gone:
            raise SolutionGone
        sent = {
            "name": name,
            "arguments": values.encode(arguments, _known_as, self.own),
            "keywords": values.encode(keywords or {}, _known_as, self.own),
            "own": list(self.own),
        }
        if self.made == 0:  # start-up is over: from here on, the time is the solution's
            signal.setitimer(signal.ITIMER_REAL, self._timeout_s)
        self.made += 1
        try:
            self._calls.write(messages.write(sent))
            self._calls.flush()
            line = self._answers.readline(messages.MAX_CHARS)
            if not line.endswith("\n"):
                raise EOFError("the answer is too long" if len(line) > 1 << 20 else "")
            answer = messages.read(line)
            if "value" in answer:
                value = self._decode(answer["value"])
                if value is None and "arguments" in answer:
                    _change(arguments, self._decode(answer["arguments"]))
                return value
        except (OSError, EOFError, ValueError) as error:
            gone = isinstance(error, OSError) or not str(error)
            self.gone = "it ended before it had answered" if gone else str(error)
            raise SolutionGone from None
        self.raised = _exception(answer.get("raised"), answer.get("message"), self.own)
        raise self.raised

    def _decode(self, value: Any) -> Any:
        return values.decode(value, self._object, self.own)

    def _object(self, number: int, truth: bool) -> values.Opaque:
        if number not in self._objects:
            kind = Handle if self._handles else Answer
            self._objects[number] = kind(number, truth, self)
        vars(self._objects[number])["opaque_truth"] = truth  # as it is now
        return self._objects[number]


class Answer(values.Opaque):
    """An object in the solution's process. If it is a function, its calls run there."""

    opaque_channel: Channel

    def __init__(self, number: int, truth: bool, channel: Channel):
        vars(self).update(opaque_number=number, opaque_truth=truth, opaque_channel=channel)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self.opaque_channel.call(".call", (self, *arguments), keywords)


def _there(operation: str) -> Callable[..., Any]:
    """A method that is executed in the solution's process."""
    return lambda handle, *arguments: handle.opaque_channel.call(operation, (handle, *arguments))


def _compared(operation: str) -> Callable[..., Any]:
    return lambda handle, other: handle._compare(operation, other)


class Handle(Answer):
    """An object in the solution's process, of a class that the tests expect a solution to define.

    Its attributes and methods are answers of the solution, like what a function returns. Two
    handles are compared in the solution's process: a solution that makes both sides could as well
    return two equal numbers. A handle cannot be compared with anything else or be an operand: if
    the object's subtraction gives 0, ``f(x) - 4`` would pass without an answer.

    3 of MBPP's 974 tasks need such objects: 367, 601 and 927.
    """

    def _compare(self, operation: str, other: Any) -> Any:
        if not isinstance(other, Handle):
            self._refuse(other)
        return self.opaque_channel.call(operation, (self, other))

    def __eq__(self, other: object) -> Any:
        return False if other is None else self._compare(".eq", other)

    def __ne__(self, other: object) -> Any:
        return True if other is None else self._compare(".ne", other)

    __lt__, __gt__ = _compared(".lt"), _compared(".gt")
    __le__, __ge__ = _compared(".le"), _compared(".ge")
    __hash__ = object.__hash__
    __getattr__, __setattr__ = _there(".getattr"), _there(".setattr")
    __bool__, __len__, __iter__ = _there(".bool"), _there(".len"), _there(".iter")
    __str__, __repr__, __getitem__ = _there(".str"), _there(".repr"), _there(".getitem")


def _known_as(value: Any) -> tuple[int, bool]:
    if isinstance(value, values.Opaque):
        return value.opaque_number, value.opaque_truth
    raise Unusable(f"the tests pass a {type(value).__name__}, which cannot be sent")


def _change(arguments: tuple, changed: Any) -> None:
    """Apply the solution's changes of its copies to the tests' own objects.

    Only after a call that returned None: then the changed arguments are the answer. A call that
    returns an answer must not change what the tests compare it with.
    """
    for old, new in zip(arguments, changed, strict=True):
        if type(old) is not type(new):
            continue
        if isinstance(old, list | bytearray):
            old[:] = new
        elif isinstance(old, dict | set):
            old.clear()
            old.update(new)
        elif isinstance(old, collections.deque):
            old.clear()
            old.extend(new)
        elif values.form_of(type(old)) == "instance" and not isinstance(old, values.Opaque):
            for name in values.attributes(old):
                object.__delattr__(old, name)
            for name, item in values.attributes(new).items():
                object.__setattr__(old, name, item)


def _exception(name: Any, message: Any, own: dict[str, type]) -> Exception:
    """The exception of that name, so that tests can expect it.

    Not StopIteration: raised within a ``map`` of the tests, it would end their loop.
    """
    kind = {**vars(builtins), **own}.get(name) if isinstance(name, str) else None
    if (
        isinstance(kind, type)
        and issubclass(kind, Exception)
        and not issubclass(kind, StopIteration | StopAsyncIteration)
    ):
        try:
            return kind(str(message))
        except TypeError:  # it needs more arguments, as UnicodeDecodeError does
            pass
    return RuntimeError(f"{name}: {message}"[:300])

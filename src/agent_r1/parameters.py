"""The base of every parameter group: unknown keys are refused, naming the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from agent_r1.errors import UserError


class ParameterError(UserError, ValueError):
    """A parameter is unknown or has a value that cannot be used; the message names the key."""


_SAID = {
    "dict_type": "Input should be a group of keys",
    "model_type": "Input should be a group of keys",
    "tuple_type": "Input should be a list",
}
"""What pydantic says in words of Python, in words of YAML."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that helps with a misspelt name: the nearest known one, then all of them; empty if
    nothing is known."""
    options = sorted(known)
    if not options:
        return ""
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return f"{hint} Known: {', '.join(options)}."


def check_address(url: str) -> str:
    """The address of a server, as it is.

    Raises:
        ValueError: it is none.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError("an address begins with http:// or https://")
    return url


def _refused(path: str, reason: str, got: Any) -> str:
    """A line for what a validator of ours refused. A group that was read inside of it has named its
    own keys; and what was given is shown if it is a value, not all keys of a group."""
    if reason.startswith(("parameter '", "unknown parameter '")):
        return reason
    shown = "" if isinstance(got, Mapping) else f" (got {got!r})"
    return f"parameter '{path}': {reason.rstrip('.')}{shown}."


class Parameters(BaseModel):
    """A group of parameters of ``conf/``.

    Subclasses stand beside what they configure; a field's docstring has its unit and its reason.
    Where ``conf/base`` shows another value than the default, the reason stands there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def read(cls, values: Mapping[str, Any] | Self | None, group: str) -> Self:
        """Validate ``values``; ``group`` is where they stand in ``conf/``, for error messages.

        Raises:
            ParameterError: an unknown key (the nearest known one is named) or a bad value.
        """
        if isinstance(values, cls):
            return values
        if values is not None and not isinstance(values, Mapping | BaseModel):
            raise ParameterError(f"parameter '{group}' must be a group of keys, got {values!r}.")
        try:
            return cls.model_validate(dict(values or {}))
        except ValidationError as error:
            raise ParameterError(cls._explain(error, group)) from None

    @classmethod
    def _explain(cls, error: ValidationError, group: str) -> str:
        lines = []
        for problem in error.errors():
            path = ".".join([group, *(str(part) for part in problem["loc"])])
            if problem["type"] == "extra_forbidden":
                known = cls._fields_at(problem["loc"][:-1])
                lines.append(
                    f"unknown parameter '{path}'.{nearest(str(problem['loc'][-1]), known)}"
                )
            elif problem["type"] == "value_error":
                lines.append(_refused(path, str(problem["ctx"]["error"]), problem["input"]))
            else:
                got = problem.get("input")
                said = _SAID.get(problem["type"], problem["msg"])
                lines.append(f"parameter '{path}': {said} (got {got!r}).")
        return "\n".join(lines)

    @classmethod
    def _fields_at(cls, location: tuple[int | str, ...]) -> list[str]:
        """Names of the fields of the nested group that ``location`` points to."""
        model: Any = cls
        for part in location:
            field = getattr(model, "model_fields", {}).get(part)
            if field is not None and isinstance(field.annotation, type):
                model = field.annotation
        return list(getattr(model, "model_fields", {}))

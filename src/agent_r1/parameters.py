"""The base of every parameter group: unknown keys are refused, naming the nearest known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError


class ParameterError(ValueError):
    """A parameter is unknown or has a value that cannot be used; the message names the key."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that helps with a misspelt name: the nearest known one, then all of them."""
    options = sorted(known)
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return f"{hint} Known: {', '.join(options)}."


class Parameters(BaseModel):
    """A group of parameters of ``conf/``.

    Subclasses stand beside what they configure; each field has the default that ``conf/base``
    shows, its unit and its reason in the field's docstring.
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
            else:
                got = problem.get("input")
                lines.append(f"parameter '{path}': {problem['msg']} (got {got!r}).")
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

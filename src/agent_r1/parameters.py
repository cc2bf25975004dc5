"""The base of every parameter group: unknown keys are refused, naming the nearest known one.

What is wrong is data: a `Problem` says where, what, and what to do. A group that holds another one
puts its own name before the path (`Problem.inside`). `ParameterError` renders all of them once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from agent_r1.errors import UserError

Location = tuple[int | str, ...]
"""Where pydantic found a problem: keys of groups, indices of lists."""

_SAID = {
    "dict_type": "Input should be a group of keys",
    "model_type": "Input should be a group of keys",
    "tuple_type": "Input should be a list",
}
"""What pydantic says in words of Python, in words of YAML."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the parameters."""

    what: str
    """A clause if `path` says where, else a whole message."""
    path: str = ""
    """Dotted name in ``conf/``; empty if ``what`` names everything that it is about."""
    got: str = ""
    """The value as Python writes it; empty if it does not help."""
    known: tuple[str, ...] | None = None
    """If the path names an unknown key: the keys that exist there. None for a known key."""
    remedy: str = ""
    """What to do, as an imperative: ``set logprobs.values to true``."""

    @property
    def nearest(self) -> str | None:
        """The known key that an unknown one resembles most; None if it resembles none."""
        return _nearest(self.path.rpartition(".")[2], self.known or ())

    def inside(self, path: str, value: Any = None) -> Problem:
        """The same problem as the group sees it that has the value ``value`` at ``path``."""
        if self.path:
            return replace(self, path=_joined(path, self.path))
        is_shown = not isinstance(value, Mapping | BaseModel) and repr(value) not in self.what
        return replace(self, path=path, got=repr(value) if is_shown else "")

    def __str__(self) -> str:
        if self.known is not None:
            name = self.path.rpartition(".")[2]
            return f"unknown parameter '{self.path}'.{nearest(name, self.known)}"
        text = self.what
        if self.path:
            got = f" (got {self.got})" if self.got else ""
            text = f"parameter '{self.path}': {self.what.rstrip('.')}{got}."
        return f"{text}: {self.remedy}" if self.remedy else text


class ParameterError(UserError, ValueError):
    """A parameter is unknown or has a value that cannot be used; the message names the key."""

    def __init__(self, *problems: Problem | str) -> None:
        """A text stands for a `Problem` that has no path yet."""
        self.problems = tuple(Problem(p) if isinstance(p, str) else p for p in problems)
        super().__init__(*self.problems)

    def __str__(self) -> str:
        """A line for each problem."""
        return "\n".join(map(str, self.problems))


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that helps with a misspelt name: the nearest known one, then all of them; empty if
    nothing is known."""
    options = sorted(known)
    if not options:
        return ""
    close = _nearest(name, options)
    hint = f" Did you mean '{close}'?" if close else ""
    return f"{hint} Known: {', '.join(options)}."


def _nearest(name: str, known: Iterable[str]) -> str | None:
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return close[0] if close else None


def _joined(*parts: object) -> str:
    return ".".join(text for part in parts if (text := str(part)))


def check_address(url: str) -> str:
    """The address of a server, as it is.

    Raises:
        ValueError: it does not begin with ``http://`` or ``https://``.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError("an address begins with http:// or https://")
    return url


class Parameters(BaseModel):
    """A group of parameters of ``conf/``.

    A subclass is in the module that it configures. A field's docstring has its unit and its reason.
    The defaults are those of ``conf/base``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def read(cls, values: Mapping[str, Any] | Self | None, group: str = "") -> Self:
        """Validate ``values``.

        Args:
            values: the group's keys; the defaults fill in what is missing.
            group: path of the group in ``conf/``. Leave it out inside a validator of the group
                around it, which knows the path.

        Raises:
            ParameterError: an unknown key (the nearest known one is named) or a bad value.
        """
        if isinstance(values, cls):
            return values
        if values is not None and not isinstance(values, Mapping | BaseModel):
            raise ParameterError(Problem(_SAID["model_type"], group, repr(values)))
        try:
            return cls.model_validate(dict(values or {}))
        except ValidationError as error:
            raise ParameterError(*cls._problems(error, group)) from None

    @classmethod
    def known_keys(cls) -> list[str]:
        """The keys of the group in ``conf/``."""
        return list(cls.model_fields)

    @classmethod
    def _problems(cls, error: ValidationError, group: str) -> list[Problem]:
        found: list[Problem] = []
        for each in error.errors():
            path = _joined(group, *cls._shown(each["loc"]))
            if each["type"] == "extra_forbidden":
                known = tuple(cls._group_at(each["loc"][:-1]).known_keys())
                found.append(Problem("unknown parameter", path, known=known))
            elif each["type"] == "value_error":
                cause = each["ctx"]["error"]
                raised = cause.problems if isinstance(cause, ParameterError) else [str(cause)]
                plain = ParameterError(*raised).problems
                found += [problem.inside(path, each["input"]) for problem in plain]
            else:
                what = _SAID.get(each["type"], each["msg"])
                found.append(Problem(what, path, repr(each.get("input"))))
        return found

    @classmethod
    def _shown(cls, location: Location) -> Location:
        """Pydantic's location of a problem, as the keys of ``conf/``."""
        return location

    @classmethod
    def _group_at(cls, location: Location) -> type[Parameters]:
        """The nested group that ``location`` points to."""
        group: type[Parameters] = cls
        for part in location:
            field = group.model_fields.get(str(part))
            group = (_group_in(field.annotation) if field is not None else None) or group
        return group


def _group_in(annotation: Any) -> type[Parameters] | None:
    """The group in an annotation such as ``Group | None`` or ``dict[str, Group]``."""
    if isinstance(annotation, type) and issubclass(annotation, Parameters):
        return annotation
    return next(filter(None, map(_group_in, get_args(annotation))), None)


def part(model: type[Parameters]) -> Any:
    """A field of `FlatParameters`: a group whose keys stand in the group around it.

    The alias is what the part is called while it is validated; no key of ``conf/`` looks like it.
    """
    return Field(default_factory=model, alias=f"({model.__name__})")


class FlatParameters(Parameters):
    """A group that is flat in ``conf/`` and has parts (`part`) in the program.

    It is read from flat keys, dumped to flat keys, and its problems have flat paths.
    """

    @classmethod
    def known_keys(cls) -> list[str]:
        """The keys of the group in ``conf/``: its own and those of its parts."""
        parts = cls._parts()
        own = [name for name, field in cls.model_fields.items() if field.alias not in parts]
        return [*own, *(key for model in parts.values() for key in model.known_keys())]

    @classmethod
    def _parts(cls) -> dict[str, type[Parameters]]:
        """Alias → model of each part."""
        fields = ((field.alias, _group_in(field.annotation)) for field in cls.model_fields.values())
        return {alias: model for alias, model in fields if alias is not None and model is not None}

    @model_validator(mode="before")
    @classmethod
    def _sort_into_parts(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        rest, sorted_ = dict(values), {}
        for alias, model in cls._parts().items():
            if alias in rest:
                raise ParameterError(
                    Problem("unknown parameter", alias, known=tuple(cls.known_keys()))
                )
            sorted_[alias] = {key: rest.pop(key) for key in model.known_keys() if key in rest}
        return rest | sorted_

    @model_serializer(mode="wrap")
    def _dump_flat(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for name, value in dump(self).items():
            flat |= value if type(self).model_fields[name].alias else {name: value}
        return flat

    @classmethod
    def _shown(cls, location: Location) -> Location:
        return location[1:] if location[:1] and location[0] in cls._parts() else location

    @classmethod
    def _group_at(cls, location: Location) -> type[Parameters]:
        model = cls._parts().get(str(location[0])) if location else None
        return super()._group_at(location) if model is None else model._group_at(location[1:])

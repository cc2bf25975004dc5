"""What a tool is to the agent (name, description, JSON schema) and to the program (a function)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model

from agent_r1.parameters import nearest
from agent_r1.tools.docstring import parse_docstring
from agent_r1.tools.failures import BadArguments


@dataclass(frozen=True, eq=False)
class ToolSpec:
    """A tool. Calling the spec calls the function; accessed on an instance, a method is bound."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON schema of the arguments: an object."""
    function: Callable[..., Any]
    arguments: type[BaseModel]
    """The same schema as a validator."""
    is_method: bool
    """Whether the function's first parameter is ``self`` and not yet bound."""
    timeout_s: float | None = None
    """Seconds per attempt; None means the runtime's own."""
    attempts: int | None = None
    """Attempts of a failing call; None means the runtime's own. 1 if it must not happen twice."""
    concurrency: int | None = None
    """Calls at once, over all trajectories; None means the runtime's own."""
    isolated: bool = False
    """Runs in a worker process, which is killed when its time is over
    (`agent_r1.tools.processes`)."""

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function; others run in worker threads."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as chat templates and model servers expect it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them; defaults are left to the function.

        Types are as strict as in JSON: ``"5"`` is not an integer, ``5`` is a number.

        Raises:
            BadArguments: one is missing, unknown, or of the wrong type; the message names it.
        """
        try:
            model = self.arguments.model_validate_json(
                json.dumps(arguments, allow_nan=False), strict=True
            )
        except ValidationError as error:
            raise BadArguments(self._explain(error)) from None
        except (TypeError, ValueError, RecursionError) as error:
            raise BadArguments(f"arguments are not JSON: {error}") from None
        fields = self.arguments.model_fields
        return {
            str(fields[name].alias): getattr(model, name)
            for name in fields
            if name in model.model_fields_set
        }

    def _explain(self, error: ValidationError) -> str:
        problem = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "missing":
            return f"argument '{path}' is missing"
        if problem["type"] == "extra_forbidden":
            return f"unknown argument '{path}'.{nearest(path, self.parameters['properties'])}"
        if not path:  # JSON that cannot be read at all: unpaired surrogates
            return f"arguments: {problem['msg']}"
        return f"argument '{path}': {problem['msg']}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object | None, owner: type | None = None) -> ToolSpec:
        if instance is None or not self.is_method:
            return self
        return replace(self, function=MethodType(self.function, instance), is_method=False)


@overload
def tool(function: Callable[..., Any]) -> ToolSpec: ...


@overload
def tool(
    *,
    name: str | None = None,
    timeout_s: float | None = None,
    attempts: int | None = None,
    concurrency: int | None = None,
    isolated: bool = False,
) -> Callable[[Callable[..., Any]], ToolSpec]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    timeout_s: float | None = None,
    attempts: int | None = None,
    concurrency: int | None = None,
    isolated: bool = False,
) -> ToolSpec | Callable[[Callable[..., Any]], ToolSpec]:
    """Turn a function or method, sync or async, into a tool; use it bare or with arguments.

    The schema comes from the type hints, the description from the docstring, the descriptions of
    the arguments from its ``Args:`` section. What the function returns is what the agent reads:
    a string as it is, anything else as JSON.

    Args:
        function: the function; a first parameter called ``self`` makes it a method.
        name: what the agent calls it; the function's name by default.
        timeout_s: seconds per attempt, instead of the runtime's.
        attempts: attempts of a failing call, instead of the runtime's.
        concurrency: calls at once over all trajectories, instead of the runtime's.
        isolated: run it in a worker process, for code that may hang, crash, or hold the
            interpreter. It must be a function that can be imported, without the episode's state.

    Raises:
        TypeError: a parameter has no type hint, has one without a JSON schema, or cannot be passed
            by name; or an isolated tool is a method, or is defined inside a function.
    """

    def specify(decorated: Callable[..., Any]) -> ToolSpec:
        found = _specify(decorated, name or decorated.__name__)
        if isolated:
            _check_importable(found)
        return replace(
            found,
            timeout_s=timeout_s,
            attempts=attempts,
            concurrency=concurrency,
            isolated=isolated,
        )

    return specify if function is None else specify(function)


def _specify(function: Callable[..., Any], name: str) -> ToolSpec:
    documented = parse_docstring(function.__doc__)
    parameters = list(inspect.signature(function).parameters.values())
    is_method = bool(parameters) and parameters[0].name == "self"
    try:
        arguments = _validator(function, name, parameters[is_method:], documented.arguments)
        schema = _json_schema(arguments)
    except PydanticUserError as error:
        raise TypeError(f"tool '{name}': a type hint has no JSON schema: {error.message}") from None
    return ToolSpec(
        name=name,
        description=documented.description,
        parameters=schema,
        function=function,
        arguments=arguments,
        is_method=is_method,
    )


def _check_importable(spec: ToolSpec) -> None:
    if spec.is_method:
        raise TypeError(
            f"tool '{spec.name}' is isolated, so it cannot take `self`: its process does not have "
            "the environment. Make it a function of its arguments"
        )
    if "<" in spec.function.__qualname__:
        raise TypeError(
            f"tool '{spec.name}' is isolated, so its process must be able to import it: define it "
            f"at the top level of a module, not as {spec.function.__qualname__}"
        )


def _validator(
    function: Callable[..., Any],
    name: str,
    parameters: list[inspect.Parameter],
    documented: dict[str, str],
) -> type[BaseModel]:
    """A model with a field per parameter. Fields are numbered and aliased, because a parameter may
    have a name that a model's field cannot have (``json``, ``copy``, ``_private``)."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool '{name}': a type hint cannot be resolved: {error}") from None
    fields: dict[str, Any] = {}
    for position, parameter in enumerate(parameters):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool '{name}': parameter '{parameter}' cannot be passed by name")
        if parameter.name not in hints:
            raise TypeError(f"tool '{name}': parameter '{parameter.name}' needs a type hint")
        default = ... if parameter.default is parameter.empty else parameter.default
        about = documented.get(parameter.name)
        field = Field(default, alias=parameter.name, description=about)
        fields[f"argument_{position}"] = (hints[parameter.name], field)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _json_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The model's schema without titles, which mean nothing to a language model."""
    schema = arguments.model_json_schema(by_alias=True)
    for part in (schema, *schema.get("properties", {}).values()):
        part.pop("title", None)
    schema.pop("additionalProperties", None)
    return {"type": "object", "properties": {}} | schema

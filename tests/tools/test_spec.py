"""What `@tool` reads from a function: schema, descriptions, binding, validation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import pytest

from agent_r1.tools import ToolSpec, tool
from agent_r1.tools.docstring import parse_docstring
from agent_r1.tools.spec import BadArguments


@tool
def route(
    start: str,
    stops: list[str],
    mode: Literal["car", "foot"] = "car",
    limit_km: float | None = None,
) -> str:
    """Plan a route.

    Takes all stops
    in order.

    Args:
        start: where to begin.
        stops (list): where to pass,
            in this order.
        mode: how to travel.

    Returns:
        the route.
    """
    return f"{start}>{'>'.join(stops)} by {mode} {limit_km}"


def test_schema_comes_from_signature_and_docstring():
    assert route.name == "route"
    assert route.description == "Plan a route.\n\nTakes all stops in order."
    assert route.parameters == {
        "type": "object",
        "properties": {
            "start": {"type": "string", "description": "where to begin."},
            "stops": {
                "type": "array",
                "items": {"type": "string"},
                "description": "where to pass, in this order.",
            },
            "mode": {
                "type": "string",
                "enum": ["car", "foot"],
                "default": "car",
                "description": "how to travel.",
            },
            "limit_km": {
                "anyOf": [{"type": "number"}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["start", "stops"],
    }
    assert route.schema["type"] == "function"
    assert route.schema["function"]["parameters"] is route.parameters


def test_a_spec_is_still_the_function():
    assert route("A", ["B"]) == "A>B by car None"


def test_no_parameters_is_an_empty_object():
    @tool
    def now() -> str:
        """The time."""
        return "noon"

    assert now.parameters == {"type": "object", "properties": {}}
    assert now.validate({}) == {}


def test_methods_are_bound_to_their_instance():
    class Shop:
        def __init__(self, price):
            self.price = price

        @tool(name="price_of", timeout_s=2.0, attempts=1)
        def price_tool(self, item: str) -> str:
            """Look a price up."""
            return f"{item}: {self.price}"

    assert isinstance(Shop.price_tool, ToolSpec)
    bound = Shop(3).price_tool
    assert bound("tea") == "tea: 3"
    assert bound.function(item="tea") == "tea: 3"
    assert (bound.name, bound.timeout_s, bound.attempts) == ("price_of", 2.0, 1)
    assert list(bound.parameters["properties"]) == ["item"]


def test_a_free_function_in_a_class_is_not_bound():
    class Planner:
        plan = route

    assert Planner().plan("A", ["B"]) == "A>B by car None"


def test_async_functions_are_recognised():
    @tool
    async def fetch(url: str) -> str:
        """Fetch."""
        return url

    assert fetch.is_async
    assert not route.is_async
    assert asyncio.run(fetch("x")) == "x"


def test_parameters_may_have_any_name():
    @tool
    def odd(json: str, copy: int, model_config: bool = True) -> str:
        """Odd names."""
        return json

    assert odd.validate({"json": "a", "copy": 1}) == {"json": "a", "copy": 1}
    assert list(odd.parameters["properties"]) == ["json", "copy", "model_config"]


def test_valid_arguments_pass_and_defaults_stay_with_the_function():
    assert route.validate({"start": "A", "stops": ["B"], "limit_km": 3}) == {
        "start": "A",
        "stops": ["B"],
        "limit_km": 3,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stops": []}, "argument 'start' is missing"),
        ({"start": 5, "stops": []}, "argument 'start': Input should be a valid string"),
        ({"start": "A", "stops": "B"}, "argument 'stops': Input should be a valid array"),
        ({"start": "A", "stops": [1]}, "argument 'stops.0': Input should be a valid string"),
        ({"start": "A", "stops": [], "mode": "fly"}, "argument 'mode': Input should be 'car' or"),
        ({"start": "A", "stops": [], "strat": 1}, "unknown argument 'strat'. Did you mean 'start'"),
        ({"start": "A", "stops": [], "limit_km": "5"}, "argument 'limit_km"),
        ({"start": "A", "stops": [], "limit_km": float("nan")}, "arguments are not JSON"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(BadArguments) as caught:
        route.validate(arguments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("value", [True, 1.5, "1", None])
def test_types_are_as_strict_as_json(value):
    @tool
    def count(n: int) -> int:
        """Count."""
        return n

    assert count.validate({"n": 1}) == {"n": 1}
    with pytest.raises(BadArguments):
        count.validate({"n": value})


def test_a_function_without_type_hints_is_refused():
    def guess(a, b: int):
        """Guess."""

    with pytest.raises(TypeError, match="tool 'guess': parameter 'a' needs a type hint"):
        tool(guess)


def test_parameters_that_cannot_be_passed_by_name_are_refused():
    def many(*items: str):
        """Many."""

    with pytest.raises(TypeError, match="cannot be passed by name"):
        tool(many)


def test_docstrings_may_be_absent_or_have_no_arguments():
    assert parse_docstring(None) == ("", {})
    assert parse_docstring("Do.\n\nRaises:\n    ValueError: never.") == ("Do.", {})


def test_docstring_entries_may_start_below_their_name():
    text = """Do.

    Args:
        a:
            On the next line: with a colon.
        b: Short.
    """
    assert parse_docstring(text).arguments == {
        "a": "On the next line: with a colon.",
        "b": "Short.",
    }


class Opaque:
    """A class without a JSON schema."""


@pytest.mark.parametrize("hint", [Callable[[int], int], Opaque], ids=["callable", "class"])
def test_a_type_without_a_json_schema_is_refused_by_name(hint):
    def run(what) -> str:
        """Run it."""

    run.__annotations__["what"] = hint
    with pytest.raises(TypeError, match="tool 'run': a type hint has no JSON schema"):
        tool(run)


def test_arguments_with_invalid_unicode_are_refused():
    @tool
    def say(text: str) -> str:
        """Say."""
        return text

    with pytest.raises(BadArguments, match=r"^arguments: Invalid JSON"):
        say.validate({"text": "\ud800"})

"""Parameter groups: unknown keys are refused before any work starts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import field_validator, model_validator

from agent_r1.parameters import ParameterError, Parameters, nearest


class Inner(Parameters):
    width: int = 3


class Outer(Parameters):
    temperature: float = 1.0
    inner: Inner = Inner()
    named: Any = None
    items: tuple[str, ...] = ()

    @field_validator("named", mode="before")
    @classmethod
    def _read(cls, values: Any) -> Any:
        if values == "odd":
            raise ParameterError("it must be even")
        return values and Inner.read(values, "outer.named")

    @model_validator(mode="after")
    def _fits(self) -> Outer:
        if self.temperature < self.inner.width - 3:
            raise ParameterError("set temperature to more")
        return self


def test_defaults_fill_what_is_missing():
    assert Outer.read({"inner": {"width": 4}}, "outer").model_dump() == {
        "temperature": 1.0,
        "inner": {"width": 4},
        "named": None,
        "items": (),
    }


def test_no_group_at_all_is_the_defaults():
    assert Outer.read(None, "outer") == Outer()


def test_an_unknown_key_names_the_nearest_known_one():
    with pytest.raises(ParameterError, match=r"'outer\.temprature'.*mean 'temperature'"):
        Outer.read({"temprature": 1}, "outer")


def test_an_unknown_nested_key_is_named_with_its_path_and_its_own_neighbours():
    with pytest.raises(ParameterError, match=r"'outer\.inner\.widht'.*mean 'width'.*Known: width"):
        Outer.read({"inner": {"widht": 1}}, "outer")


def test_a_bad_value_is_named_with_its_key_and_what_was_given():
    with pytest.raises(ParameterError, match=r"'outer\.temperature'.*got 'hot'"):
        Outer.read({"temperature": "hot"}, "outer")


def test_what_is_expected_is_said_in_words_of_yaml():
    with pytest.raises(ParameterError, match=r"'outer\.items': Input should be a list \(got 'a'"):
        Outer.read({"items": "a"}, "outer")
    with pytest.raises(ParameterError, match=r"'outer\.inner': Input should be a group of keys"):
        Outer.read({"inner": 3}, "outer")


def test_a_group_that_is_none_is_refused():
    with pytest.raises(ParameterError, match=r"^parameter 'outer' must be a group.*got 'inner'"):
        Outer.read("inner", "outer")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"named": "odd"}, "parameter 'outer.named': it must be even (got 'odd')."),
        (
            {"named": {"widht": 1}},
            "unknown parameter 'outer.named.widht'. Did you mean 'width'? Known: width.",
        ),
        ({"inner": {"width": 9}}, "parameter 'outer': set temperature to more."),
    ],
)
def test_a_validators_own_message_stands_once_and_alone(values, message):
    with pytest.raises(ParameterError) as error:
        Outer.read(values, "outer")
    assert str(error.value) == message


def test_all_problems_are_reported_at_once():
    with pytest.raises(ParameterError) as error:
        Outer.read({"temprature": 1, "inner": {"width": "x"}}, "outer")
    assert len(str(error.value).splitlines()) == 2


def test_parameters_cannot_be_changed_after_reading():
    with pytest.raises(ValueError, match="frozen"):
        Outer().temperature = 2.0


def test_a_name_that_resembles_nothing_still_lists_what_is_known():
    assert nearest("zzz", ["grpo", "gae"]) == " Known: gae, grpo."


def test_where_nothing_is_known_nothing_is_listed():
    assert nearest("default", []) == ""

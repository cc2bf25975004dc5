"""Parameter groups: unknown keys are refused before any work starts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import field_validator, model_validator

from agent_r1.parameters import (
    FlatParameters,
    ParameterError,
    Parameters,
    Problem,
    nearest,
    part,
)


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
        return values and Inner.read(values)

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
    with pytest.raises(
        ParameterError, match=r"^parameter 'outer': .* group of keys \(got 'inner'\)\.$"
    ):
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


def problems_of(model: type[Parameters], values: Any, group: str = "group") -> list[Problem]:
    with pytest.raises(ParameterError) as error:
        model.read(values, group)
    return list(error.value.problems)


def test_problems_are_data():
    unknown, bad = problems_of(Outer, {"inner": {"widht": 1}, "temperature": "hot"})[::-1]
    assert (unknown.path, unknown.nearest, unknown.known) == (
        "group.inner.widht", "width", ("width",),
    )  # fmt: skip
    assert (bad.path, bad.got, bad.nearest) == ("group.temperature", "'hot'", None)
    assert bad.what.startswith("Input should be a valid number")


def test_a_group_puts_its_path_before_that_of_a_group_inside():
    assert [problem.path for problem in problems_of(Outer, {"named": {"widht": 1}})] == [
        "group.named.widht"
    ]
    assert [problem.path for problem in problems_of(Outer, {"named": {"widht": 1}}, "")] == [
        "named.widht"
    ]


def test_a_remedy_stands_after_what_is_wrong():
    assert str(Problem("a is 1, and b is 2", remedy="set b to 1")) == (
        "a is 1, and b is 2: set b to 1"
    )


class Clip(Parameters):
    low: float = 0.2
    nested: Inner = Inner()

    @model_validator(mode="after")
    def _fits(self) -> Clip:
        if self.low > 1:
            raise ParameterError("set low to less")
        return self


class Flat(FlatParameters):
    name: str = "x"
    clip: Clip = part(Clip)


def test_a_part_is_read_from_flat_keys_and_dumped_to_flat_keys():
    flat = Flat.read({"low": 0.1, "nested": {"width": 4}}, "flat")
    assert flat.clip == Clip(low=0.1, nested=Inner(width=4))
    assert flat.model_dump() == {"name": "x", "low": 0.1, "nested": {"width": 4}}
    assert Flat.read(flat.model_dump(mode="json"), "flat") == flat
    assert Flat() == Flat.read({}, "flat")
    assert sorted(Flat.known_keys()) == ["low", "name", "nested"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lo": 1}, "unknown parameter 'flat.lo'. Did you mean 'low'? Known: low, name, nested."),
        ({"clip": {}}, "unknown parameter 'flat.clip'. Known: low, name, nested."),
        ({"(Clip)": {}}, "unknown parameter 'flat.(Clip)'. Known: low, name, nested."),
        (
            {"nested": {"widht": 1}},
            "unknown parameter 'flat.nested.widht'. Did you mean 'width'? Known: width.",
        ),
        ({"low": 2}, "parameter 'flat': set low to less."),
        ({"nested": 1}, "parameter 'flat.nested': Input should be a group of keys (got 1)."),
    ],
)
def test_no_problem_names_a_part(values, message):
    with pytest.raises(ParameterError) as error:
        Flat.read(values, "flat")
    assert str(error.value) == message

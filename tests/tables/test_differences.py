from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1 import schemas
from agent_r1.tables.differences import Difference, compare_tables
from tests.support.step_tables import rewards, rollouts, step

ROWS = [step("a/0", 0), step("a/0", 1), step("a/1", 0), step("b/0", 0), step("b/0", 1)]


def compare(*rows):
    return compare_tables(rollouts(*rows), rollouts(*ROWS), "rollouts")


def test_equal_tables_have_no_difference():
    assert compare(*ROWS) == []
    assert compare_tables(rollouts(), rollouts(), "rollouts") == []


def test_every_column_is_compared():
    """Null differs from the empty list, the empty text and 0."""
    other = {"string": "x", "bool": True, "int32": 77, "int64": 77, "float": 0.5}
    for field in schemas.ROLLOUTS:
        if field.name in ("trajectory_id", "step_index"):
            continue
        value = other.get(str(field.type), [])
        ours, theirs = ROWS[0] | {field.name: value}, ROWS[0]
        (found,) = compare_tables(rollouts(ours), rollouts(theirs), "rollouts")
        assert found == Difference("a/0", 0, field.name, value, theirs.get(field.name))


def test_missing_extra_and_duplicate_rows():
    removed = compare(*ROWS[:1], *ROWS[2:])
    assert removed == [Difference("a/0", 1, "rows", 0, 1)]
    assert compare(*ROWS, step("b/0", 2)) == [Difference("b/0", 2, "rows", 1, 0)]
    assert compare(*ROWS[:2], *ROWS[1:]) == [Difference("a/0", 1, "rows", 2, 1)]


def test_rows_in_another_order_are_reported_by_position():
    found = compare(ROWS[0], ROWS[3], ROWS[2], ROWS[1], ROWS[4])
    assert found == [
        Difference("a/0", 1, "position", 3, 1),
        Difference("b/0", 0, "position", 1, 3),
    ]
    # A missing row does not change the positions of the others.
    assert [one.column for one in compare(*ROWS[1:])] == ["rows"]


@given(st.permutations(range(len(ROWS))), st.data())
def test_only_positions_depend_on_the_order_of_rows(order, data):
    changed = data.draw(st.sets(st.sampled_from(range(len(ROWS)))))
    rows = [row | {"seed": 5} if i in changed else row for i, row in enumerate(ROWS)]
    found = compare(*(rows[i] for i in order))
    assert [one for one in found if one.column != "position"] == compare(*rows)
    keys = [(one.trajectory_id, one.step_index) for one in found]
    assert keys == sorted(keys)
    moved = {i for place, i in enumerate(order) if i != place}
    assert len([one for one in found if one.column == "position"]) == len(moved)


def test_floats_are_compared_bit_by_bit_and_nan_equals_nothing():
    (found,) = compare_tables(
        rollouts(step("a/0", env_reward=0.1)),
        rollouts(step("a/0", env_reward=0.1 + 1e-8)),
        "rollouts",
    )
    assert found.column == "env_reward"
    nan = rollouts(step("a/0", env_reward=float("nan")))
    assert [one.column for one in compare_tables(nan, nan, "rollouts")] == ["env_reward"]


def test_tables_of_rewards():
    table = rollouts(*ROWS)
    ours = rewards(table, a__0=1.0, a__1=0.5, b__0=None)
    theirs = rewards(table, a__0=1.0, a__1=0.0, b__0=0.0)
    found = compare_tables(ours, theirs, "rewards")
    assert [(one.trajectory_id, one.step_index, one.column) for one in found] == [
        ("a/1", 0, "reward"),
        ("a/1", 0, "trajectory_reward"),
        ("b/0", 0, "reward"),
        ("b/0", 0, "trajectory_reward"),
        ("b/0", 1, "reward"),
        ("b/0", 1, "trajectory_reward"),
    ]
    assert str(found[0]) == "a/1, step 0, reward: recorded 0.5, replayed 0.0"
    assert str(found[2]) == "b/0, step 0, reward: recorded null, replayed 0.0"


def test_a_table_that_does_not_fit_its_schema_is_an_error():
    with pytest.raises(schemas.SchemaError, match="'seed' is missing"):
        compare_tables(rollouts(*ROWS).drop(columns="seed"), rollouts(*ROWS), "rollouts")


def test_long_texts_are_shown_around_the_first_difference():
    ours, theirs = "x" * 500 + "\nAburg" + "y" * 500, "x" * 500 + "\nBburg" + "y" * 500
    text = str(Difference("a/0", 3, "observation", ours, theirs))
    assert text.startswith("a/0, step 3, observation: recorded …'xxx")
    assert "\\nAburgyyy" in text
    assert "\\nBburgyyy" in text
    assert "\n" not in text
    assert len(text) < 250


def test_long_lists_are_shown_around_the_first_difference():
    ours = list(range(100))
    theirs = [*ours[:50], 7, *ours[51:]]
    assert str(Difference("a/0", 0, "context_token_ids", ours, theirs)) == (
        "a/0, step 0, context_token_ids: "
        "recorded […, 47, 48, 49, 50, 51, 52, 53, 54, …] (100 values), "
        "replayed […, 47, 48, 49, 7, 51, 52, 53, 54, …] (100 values)"
    )
    assert str(Difference("a/0", 0, "action_logprobs", [-1.0], [-1.0, -2.0])).endswith(
        "recorded [-1.0] (1 values), replayed [-1.0, -2.0] (2 values)"
    )

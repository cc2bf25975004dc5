"""Fitting tables to schemas: casts, errors and nulls."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1 import schemas, tables
from agent_r1.tables.arrays import one_array


def rewards(**columns):
    rows = {"trajectory_id": ["a", "b"], "step_index": [0, 0], "components": ["{}", "{}"]}
    return pd.DataFrame(rows | columns)


def test_python_lists_take_the_schema_width():
    frame = tables.from_rows(
        [{"trajectory_id": "a", "step_index": 0, "policy_logprobs": [-1.0, -2.0]}], "logprobs"
    )
    assert str(frame["policy_logprobs"].dtype) == "list<element: float>[pyarrow]"


def test_an_absent_nullable_column_and_a_nan_are_null():
    frame = tables.conform(rewards(reward=[np.nan, 1.0]), "rewards")
    assert frame["reward"].isna().tolist() == [True, False]
    assert frame["correct"].isna().all()


def test_empty_lists_keep_their_element_type():
    frame = tables.build(
        {"trajectory_id": ["a"], "step_index": [0], "policy_logprobs": [[]]}, "logprobs"
    )
    assert tables.to_arrow(frame, "logprobs").schema == schemas.LOGPROBS


def test_columns_are_put_in_the_order_of_the_schema():
    frame = rewards()[["components", "step_index", "trajectory_id"]]
    assert list(tables.conform(frame, "rewards")) == schemas.REWARDS.names


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (rewards().drop(columns="components"), "'components' is missing"),
        (rewards(step_index=[0, None]), "'step_index' is null in row 1"),
        (rewards(step_index=[0.5, 1.0]), "'step_index' cannot be cast to int32"),
        (rewards(step_index=[0, 2**40]), "'step_index' cannot be cast to int32"),
        (rewards(trajectory_id=[["a"], ["b"]]), "'trajectory_id' cannot be cast"),
    ],
)
def test_errors_name_the_table_and_the_column(frame, message):
    with pytest.raises(schemas.SchemaError, match=f"table 'rewards'.*{message}"):
        tables.conform(frame, "rewards")


def test_an_unknown_column_is_an_error_when_saved_and_dropped_when_read():
    frame = rewards(extra=[1, 2])
    assert "extra" not in tables.conform(frame, "rewards")
    with pytest.raises(schemas.SchemaError, match="no column \\['extra'\\]"):
        tables.to_arrow(frame, "rewards")


def test_an_empty_table_has_all_columns():
    for name, schema in schemas.SCHEMAS.items():
        assert tables.to_arrow(tables.empty(name), name).schema == schema


LISTS = st.lists(st.none() | st.lists(st.floats(-1e3, 1e3, width=32), max_size=4), max_size=8)


@given(LISTS)
def test_ragged_round_trip(rows):
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.array(rows, pa.list_(pa.float32()))))
    flat = tables.ragged(column)
    assert flat.lengths.tolist() == [len(row or ()) for row in rows]
    assert flat.to_arrow(pa.float32()).to_pylist() == [list(row or ()) for row in rows]


def test_ragged_follows_slices_and_chunks():
    chunks = pa.chunked_array([pa.array([[1], [2, 3]]), pa.array([[4], []])])
    column = pd.Series(pd.arrays.ArrowExtensionArray(chunks)).iloc[1:]
    flat = tables.ragged(column)
    assert flat.values.tolist() == [2, 3, 4]
    assert flat.offsets.tolist() == [0, 2, 3, 3]


def test_elements_of_a_ragged_column_may_be_null():
    flat = tables.Ragged(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 2, 3]))
    array = flat.to_arrow(pa.float32(), null=np.array([False, True, False]))
    assert array.to_pylist() == [[1.0, None], [], [3.0]]
    again = tables.ragged(pd.Series(pd.arrays.ArrowExtensionArray(array)))
    assert again.values.tolist() == pytest.approx([1.0, np.nan, 3.0], nan_ok=True)


def test_a_table_that_fits_is_not_copied():
    table = tables.build({"step": [1, 2], "metric": ["a", "b"], "value": [0.5, 1.0]}, "metrics")
    again = tables.conform(table, "metrics")
    first, second = (
        one_array(pa.chunked_array(frame["value"].array.__arrow_array__())).buffers()[1]
        for frame in (table, again)
    )
    assert first.address == second.address

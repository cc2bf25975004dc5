"""Make a DataFrame fit a schema of `agent_r1.schemas`: exact columns, Arrow-backed types.

Every table passes through `conform` or `to_arrow` before it is saved, hashed or compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from agent_r1.schemas import SCHEMAS, SchemaError
from agent_r1.tables.arrays import one_array


def to_arrow(frame: pd.DataFrame, name: str, *, extra: str = "error") -> pa.Table:
    """``frame`` as an Arrow table with exactly the columns and types of schema ``name``.

    A missing nullable column becomes nulls. A cast that would lose a value is an error.

    Args:
        frame: any DataFrame; list columns may be Python lists, numpy arrays or Arrow-backed.
        name: a key of `SCHEMAS`.
        extra: ``"error"`` refuses unknown columns, ``"drop"`` drops them.

    Raises:
        SchemaError: a column is missing or unknown, has the wrong type, or has a forbidden null.
    """
    schema = SCHEMAS[name]
    unknown = [column for column in frame.columns if column not in schema.names]
    if unknown and extra == "error":
        raise SchemaError(f"table '{name}' has no column {unknown}; its columns are {schema.names}")
    columns = [_column(frame, field, name) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(frame: pd.DataFrame, field: pa.Field, name: str) -> pa.Array:
    if field.name not in frame.columns:
        if not field.nullable:
            raise SchemaError(f"table '{name}': column '{field.name}' is missing")
        return pa.nulls(len(frame), field.type)
    series = frame[field.name]
    try:
        if isinstance(series.dtype, pd.ArrowDtype):
            array = one_array(pa.chunked_array(series.array.__arrow_array__()).cast(field.type))
        else:
            array = _convert(series, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"table '{name}': column '{field.name}' cannot be cast to {field.type}: {error}"
        ) from None
    if array.null_count and not field.nullable:
        row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
        raise SchemaError(f"table '{name}': column '{field.name}' is null in row {row}")
    return array


def _convert(series: pd.Series, kind: pa.DataType) -> pa.Array:
    """A column that is not Arrow-backed, cast without loss."""
    if pa.types.is_nested(kind) or series.dtype == object:
        return pa.array(series.tolist(), type=kind, from_pandas=True)
    array = pa.array(series, from_pandas=True)
    if pa.types.is_floating(array.type) and pa.types.is_floating(kind):
        return array.cast(kind, safe=False)  # float64 → float32 may round
    return array.cast(kind)


def to_frame(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as a DataFrame with Arrow-backed dtypes; no value is copied."""
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def conform(frame: pd.DataFrame, name: str, *, extra: str = "drop") -> pd.DataFrame:
    """``frame`` with exactly the columns and Arrow-backed types of schema ``name``.

    Nodes call this on their inputs; see `to_arrow` for the rules and errors.
    """
    return to_frame(to_arrow(frame, name, extra=extra))


def build(columns: Mapping[str, Any], name: str) -> pd.DataFrame:
    """A table of schema ``name`` from one sequence (or Arrow array) per column."""
    arrays = {
        key: pd.Series(pd.arrays.ArrowExtensionArray(value))
        if isinstance(value, pa.Array | pa.ChunkedArray)
        else pd.Series(value, dtype=object if not isinstance(value, np.ndarray) else None)
        for key, value in columns.items()
    }
    return conform(pd.DataFrame(arrays), name, extra="error")


def from_rows(rows: Sequence[Mapping[str, Any]], name: str) -> pd.DataFrame:
    """A table of schema ``name`` from one mapping per row; ``rows`` may be empty."""
    return to_frame(pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMAS[name]))


def empty(name: str) -> pd.DataFrame:
    """The table of schema ``name`` without rows."""
    return to_frame(SCHEMAS[name].empty_table())

"""The knowledge base: the schemas of its three tables, and the checks when they are read.

The tables are Parquet files in `data/01_raw/knowledge_base`. The README beside them names their
sources. All code reads them with `read_records`, whose errors name the file, row and key.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from agent_r1.errors import UserError

FOLDER = "data/01_raw/knowledge_base"

_STR, _INT, _FLOAT, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_STRS = pa.list_(pa.field("element", _STR))


def _schema(required: dict[str, pa.DataType], optional: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema(
        [pa.field(name, kind, nullable=False) for name, kind in required.items()]
        + [pa.field(name, kind) for name, kind in optional.items()]
    )


COUNTRIES = _schema(
    {"iso_code": _STR, "name": _STR},
    {
        "capital": _STR,
        "region": _STR,
        "subregion": _STR,
        "currency": _STR,
        "currency_code": _STR,
        "demonyms": _STRS,
        "languages": _STRS,
        "neighbours": _STRS,
        "calling_codes": _STRS,
        "internet_domain": _STR,
        "population": _INT,
        "area_km2": _INT,
    },
)

CITIES = _schema(
    {"geonames_id": _INT, "name": _STR, "source_name": _STR, "country": _STR, "iso_code": _STR},
    {
        "is_capital": _BOOL,
        "population": _INT,
        "time_zone": _STR,
        "latitude": _FLOAT,
        "longitude": _FLOAT,
    },
)

ELEMENTS = _schema(
    {"atomic_number": _INT, "name": _STR, "symbol": _STR},
    {
        "period": _INT,
        "block": _STR,
        "group_name": _STR,
        "discoverers": _STRS,
        "discovery_year": _INT,
        "discovery_places": _STRS,
    },
)

TABLES = {"countries": COUNTRIES, "cities": CITIES, "elements": ELEMENTS}


class KnowledgeBaseError(UserError, ValueError):
    """A table of the knowledge base is malformed. The message names the file, row and key."""


def read_records(frame: pd.DataFrame, name: str) -> list[dict[str, Any]]:
    """The rows of the table ``name`` as dictionaries of Python values; missing values are None.

    Args:
        frame: the table as the catalog loads it.
        name: a key of `TABLES`.

    Raises:
        KnowledgeBaseError: a column is missing; a required value is missing; a value is empty or
            has the wrong type; or two rows have the same name.
    """
    schema, file = TABLES[name], f"{FOLDER}/{name}.parquet"
    missing = [column for column in schema.names if column not in frame.columns]
    if missing:
        raise KnowledgeBaseError(
            f"{file}: column {missing[0]!r} is missing; the columns are {list(frame.columns)}. "
            "Rebuild it with: kedro run --pipelines knowledge_base"
        )
    columns = {field.name: _values(frame[field.name], field, file) for field in schema}
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    first_row: dict[str, int] = {}
    for row, record in enumerate(records):
        other = first_row.setdefault(record["name"].casefold(), row)
        if other != row:
            raise KnowledgeBaseError(
                f"{file}: row {row}, key 'name': {record['name']!r} is also the name in row {other}"
            )
    return records


def _values(series: pd.Series, field: pa.Field, file: str) -> list[Any]:
    """A column as Python values. Each is checked alone, so the error can name its row."""
    values = []
    for row, value in enumerate(series.tolist()):
        try:
            if pa.types.is_list(field.type) and isinstance(value, str):
                raise pa.ArrowTypeError("expected a list, got a string")
            scalar = pa.scalar(value, type=field.type, from_pandas=True).as_py()
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise KnowledgeBaseError(
                f"{file}: row {row}, key {field.name!r}: {value!r} is not {field.type} ({error})"
            ) from None
        if not field.nullable and scalar is None:
            raise KnowledgeBaseError(f"{file}: row {row}, key {field.name!r}: the value is missing")
        texts = scalar if isinstance(scalar, list) else [scalar]
        if any(isinstance(text, str) and (not text or text != text.strip()) for text in texts):
            raise KnowledgeBaseError(
                f"{file}: row {row}, key {field.name!r}: {value!r} is empty or padded with spaces"
            )
        values.append(scalar)
    return values

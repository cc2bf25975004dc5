import re

import numpy as np
import pandas as pd
import pytest

from agent_r1.tasks.knowledge_base import KnowledgeBaseError, read_records


def test_records_hold_python_values_and_none_for_missing_ones(countries):
    records = read_records(countries, "countries")
    assert records[0]["languages"] == ["English", "French", "Dutch", "Greek"]
    assert records[3]["population"] is None
    assert records[3]["languages"] is None
    assert type(records[0]["population"]) is int


def test_records_do_not_depend_on_how_the_file_was_loaded(countries, tmp_path):
    path = tmp_path / "countries.parquet"
    countries.to_parquet(path, index=False)
    expected = read_records(countries, "countries")
    assert read_records(pd.read_parquet(path), "countries") == expected
    as_arrays = countries.assign(
        languages=[np.array(x) if x else None for x in countries.languages]
    )
    assert read_records(as_arrays, "countries") == expected


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (1, "name", None, "countries.parquet: row 1, key 'name': the value is missing"),
        (2, "name", " Corland", "countries.parquet: row 2, key 'name'.*padded"),
        (2, "capital", "", "countries.parquet: row 2, key 'capital'.*empty"),
        (
            1,
            "name",
            "arland",
            "countries.parquet: row 1, key 'name': 'arland' is also the name in row 0",
        ),
        (
            3,
            "population",
            "many",
            "countries.parquet: row 3, key 'population': 'many' is not int64",
        ),
        (0, "languages", "English", "countries.parquet: row 0, key 'languages'"),
    ],
)
def test_a_malformed_value_is_named_by_file_row_and_key(countries, row, column, value, message):
    broken = countries.astype(object)
    broken.at[row, column] = value
    with pytest.raises(KnowledgeBaseError, match=message):
        read_records(broken, "countries")


def test_a_missing_column_is_named_with_the_command_that_rebuilds(cities):
    with pytest.raises(
        KnowledgeBaseError, match=re.escape("column 'time_zone' is missing")
    ) as info:
        read_records(cities.drop(columns="time_zone"), "cities")
    assert "kedro run --pipelines knowledge_base" in str(info.value)

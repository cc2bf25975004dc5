"""Tables on disk: exact schema, equal bytes, atomic."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kedro.io import DatasetError, Version

from agent_r1 import schemas, tables
from agent_r1.datasets import ArrowParquetDataset

ROWS = [
    {"trajectory_id": "a", "step_index": 0, "advantages": [0.5, -0.5], "returns": None,
     "loss_mask": [True, False], "group_size": 2},
    {"trajectory_id": "a", "step_index": 1, "advantages": [], "returns": [1.0],
     "loss_mask": [], "group_size": 2},
]  # fmt: skip


def dataset(folder: Path, version: Version | None = None, schema: str | None = "advantages"):
    return ArrowParquetDataset(filepath=str(folder / "t.parquet"), schema=schema, version=version)


def test_a_table_comes_back_with_the_types_of_its_schema(tmp_path):
    table = dataset(tmp_path)
    table.save(pd.DataFrame(ROWS))  # Python lists: float64 and int64 until they are conformed
    loaded = table.load()
    assert pq.read_schema(tmp_path / "t.parquet") == schemas.ADVANTAGES
    assert loaded.equals(tables.from_rows(ROWS, "advantages"))
    assert str(loaded["advantages"].dtype) == "list<element: float>[pyarrow]"


def test_bytes_depend_on_the_content_alone(tmp_path):
    frame = tables.from_rows(ROWS, "advantages")
    chunked = pd.concat([frame.iloc[:1], frame.iloc[1:]])
    other_index = frame.set_index(pd.Index([7, 9]))
    extra = frame[list(reversed(frame.columns))]
    written = []
    for i, variant in enumerate((frame, pd.DataFrame(ROWS), chunked, other_index, extra)):
        folder = tmp_path / str(i)
        dataset(folder).save(variant)
        written.append((folder / "t.parquet").read_bytes())
    assert len(set(written)) == 1


def test_a_file_describes_itself(tmp_path):
    dataset(tmp_path).save(pd.DataFrame(ROWS))
    schema = pq.read_schema(tmp_path / "t.parquet")
    returns = schema.field("returns").metadata
    assert b"targets of the critic" in returns[b"about"]
    assert b"estimator" in returns[b"null"]
    assert schema.field("loss_mask").metadata[b"about"] == b"true where the token is trained on"
    assert b"pandas" not in (schema.metadata or {})


def test_bytes_differ_where_the_content_does(tmp_path):
    dataset(tmp_path / "a").save(pd.DataFrame(ROWS))
    dataset(tmp_path / "b").save(pd.DataFrame(ROWS[::-1]))
    assert (tmp_path / "a/t.parquet").read_bytes() != (tmp_path / "b/t.parquet").read_bytes()


def test_an_empty_table_keeps_its_types(tmp_path):
    dataset(tmp_path).save(tables.empty("advantages"))
    loaded = dataset(tmp_path).load()
    assert len(loaded) == 0
    assert tables.to_arrow(loaded, "advantages").schema == schemas.ADVANTAGES


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"surprise": [1, 2]}, "no column .'surprise'."),
        ({"group_size": [1, None]}, "'group_size' is null in row 1"),
        ({"step_index": ["x", "y"]}, "'step_index' cannot be cast"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(tmp_path, change, message):
    frame = pd.DataFrame(ROWS).assign(**change)
    with pytest.raises(DatasetError, match=message):
        dataset(tmp_path).save(frame)
    assert not list(tmp_path.rglob("*.*"))


def test_a_save_that_fails_midway_leaves_no_version(tmp_path, monkeypatch):
    table = dataset(tmp_path, Version(None, "v1"))

    def half(_, where, **__):
        Path(where).write_bytes(b"PAR1")
        raise OSError("No space left on device")

    monkeypatch.setattr(pq, "write_table", half)
    with pytest.raises(DatasetError, match="No space left"):
        table.save(pd.DataFrame(ROWS))
    assert not table.exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_versions_stand_side_by_side(tmp_path):
    for version, rows in (("v1", ROWS), ("v2", ROWS[:1])):
        dataset(tmp_path, Version(None, version)).save(pd.DataFrame(rows))
    assert (tmp_path / "t.parquet/v1/t.parquet").is_file()
    assert len(dataset(tmp_path, Version("v1", None)).load()) == 2
    assert len(dataset(tmp_path, Version(None, None)).load()) == 1


def test_a_version_is_never_written_twice(tmp_path):
    dataset(tmp_path, Version(None, "v1")).save(pd.DataFrame(ROWS))
    with pytest.raises(DatasetError, match="must not exist"):
        dataset(tmp_path, Version(None, "v1")).save(pd.DataFrame(ROWS))


def test_without_a_schema_columns_stay_as_they_are(tmp_path):
    frame = pd.DataFrame({"name": ["Peru"], "languages": [["Spanish"]]})
    dataset(tmp_path, schema=None).save(frame)
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.to_pylist() == [{"name": "Peru", "languages": ["Spanish"]}]
    assert b"pandas" not in (table.schema.metadata or {})


def test_an_unknown_schema_is_refused():
    with pytest.raises(ValueError, match="unknown table schema 'adventages'"):
        ArrowParquetDataset(filepath="x", schema="adventages")


def test_a_file_with_other_types_is_cast_safely_or_refused(tmp_path):
    rows = [row | {"step_index": 2**40} for row in ROWS[:1]]
    fields = [pa.field(f.name, pa.int64() if f.name == "step_index" else f.type)
              for f in schemas.ADVANTAGES]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), tmp_path / "t.parquet")
    with pytest.raises(DatasetError, match="'step_index' cannot be cast to int32"):
        dataset(tmp_path).load()

"""A table on disk: schema-enforced, and the same bytes for the same content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from kedro.io import DatasetError

from agent_r1 import schemas, tables
from agent_r1.datasets.local import LocalDataset
from agent_r1.storage.atomic import atomic_path

_WRITE = {
    # Dictionaries cost more than they save on token ids, and zstd finds the repeats anyway.
    "compression": "zstd",
    "use_dictionary": False,
    "store_schema": True,
    "version": "2.6",
}


class ArrowParquetDataset(LocalDataset):
    """A Parquet file with exactly the columns and types of a schema of `agent_r1.schemas`.

    Saving takes any DataFrame that fits the schema; loading gives one with Arrow-backed dtypes.
    The bytes depend on the content alone: pandas' metadata is not written. The schema's description
    of each column is written, so that a file describes itself.
    """

    def __init__(self, *, filepath: str, schema: str | None = None, **entry: Any) -> None:
        """
        Args:
            filepath: see `LocalDataset`.
            schema: a key of `agent_r1.schemas.SCHEMAS`; None keeps the columns as they are.
            entry: the rest of the catalog entry; see `LocalDataset`.

        Raises:
            ValueError: the schema is unknown.
        """
        super().__init__(filepath=filepath, **entry)
        if schema is not None and schema not in schemas.SCHEMAS:
            known = ", ".join(sorted(schemas.SCHEMAS))
            raise ValueError(f"unknown table schema '{schema}'. Known: {known}.")
        self._schema = schema

    def _read(self, path: Path) -> pd.DataFrame:
        table = pq.read_table(path, partitioning=None)
        if self._schema is not None and table.schema != schemas.SCHEMAS[self._schema]:
            return tables.conform(tables.to_frame(table), self._schema, extra="error")
        return tables.to_frame(table)

    def _commit(self, data: pd.DataFrame, path: Path) -> None:
        if not isinstance(data, pd.DataFrame):
            raise DatasetError(f"expected a DataFrame, got {type(data).__name__}")
        if self._schema is not None:
            table = tables.to_arrow(data, self._schema)
        else:
            table = pa.Table.from_pandas(data, preserve_index=False)
        # Pandas' metadata depends on its version; that of the fields is constant.
        plain = table.schema.remove_metadata()
        table = pa.Table.from_arrays(table.combine_chunks().columns, schema=plain)
        with atomic_path(path) as temporary:
            pq.write_table(table, temporary, **_WRITE)

    def _describe(self) -> dict[str, Any]:
        return {**super()._describe(), "schema": self._schema}

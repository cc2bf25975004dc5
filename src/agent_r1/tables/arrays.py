"""List columns as flat NumPy arrays, without a Python loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa


class Ragged(NamedTuple):
    """A list column as one flat array: row ``i`` is ``values[offsets[i]:offsets[i + 1]]``."""

    values: np.ndarray
    """[offsets[-1]]: all elements, flat."""
    offsets: np.ndarray
    """int64[rows + 1], from 0; a null list counts as an empty one."""

    @property
    def lengths(self) -> np.ndarray:
        """int64[rows]: elements per row."""
        return np.diff(self.offsets)

    def to_arrow(self, element: pa.DataType, null: np.ndarray | None = None) -> pa.ListArray:
        """An Arrow list column with this element type; ``null`` (bool) marks null elements."""
        kind = pa.list_(pa.field("element", element))
        offsets = pa.array(self.offsets.astype(np.int32))
        values = pa.array(self.values, type=element, mask=null)
        return pa.ListArray.from_arrays(offsets, values, type=kind)


def ragged(column: pd.Series) -> Ragged:
    """The flat values and the offsets of an Arrow-backed list column."""
    array = one_array(pa.chunked_array(column.array.__arrow_array__()))
    lengths = np.nan_to_num(
        array.value_lengths().to_numpy(zero_copy_only=False).astype(np.float64)
    ).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    # flatten() respects slices and skips null lists; so do the lengths.
    values = array.flatten().to_numpy(zero_copy_only=False)
    return Ragged(values, offsets)


def one_array(chunked: pa.ChunkedArray) -> pa.Array:
    """The elements as one array. ``combine_chunks`` would copy a single chunk; this does not."""
    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    return pa.concat_arrays(chunked.chunks) if chunked.num_chunks else pa.array([], chunked.type)

"""List columns with one element per action token, as flat arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from agent_r1.schemas import SchemaError
from agent_r1.tables.arrays import ragged


def token_column(frame: pd.DataFrame, table: str, column: str, lengths: np.ndarray) -> np.ndarray:
    """The flat elements of a list column; a null element is NaN.

    Args:
        frame: conformed table.
        table: its name, for the message.
        column: the list column.
        lengths: int64[rows]: action tokens of each row.

    Raises:
        SchemaError: a list does not have the length of its action.
    """
    values, offsets = ragged(frame[column])
    wrong = np.flatnonzero(np.diff(offsets) != lengths)
    if len(wrong):
        name = frame["trajectory_id"].iloc[wrong[0]]
        raise SchemaError(
            f"table '{table}': '{column}' of trajectory '{name}', step "
            f"{frame['step_index'].iloc[wrong[0]]}, does not have the length of its action"
        )
    return values


def nullable_token_column(
    frame: pd.DataFrame, table: str, column: str, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The elements of a float list column whose lists may be null, and which are not null.

    Args: see `token_column`.

    Returns:
        float32[action tokens]: the elements, NaN where the element or its list is null;
        bool[action tokens]: false in these places.

    Raises:
        SchemaError: a list that is not null does not have the length of its action.
    """
    given = frame[column].notna().to_numpy()
    elements = token_column(frame, table, column, np.where(given, lengths, 0))
    places = np.repeat(given, lengths)
    values, there = np.full(len(places), np.nan, np.float32), np.zeros(len(places), bool)
    values[places], there[places] = elements, _not_null(frame[column])
    return values, there


def _not_null(column: pd.Series) -> np.ndarray:
    """bool[elements]: the element is not null; null lists have no elements."""
    array = pa.chunked_array(column.array.__arrow_array__()).combine_chunks()
    return array.flatten().is_valid().to_numpy(zero_copy_only=False)

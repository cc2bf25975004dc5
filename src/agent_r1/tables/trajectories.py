"""The trajectories of a table that has a row per step.

Every stage after the rollout needs the rows of each trajectory in step order, tables with the same
steps in the same order, and a mapping between rows and trajectories. All of this is index
arithmetic on whole columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from agent_r1.schemas import SchemaError
from agent_r1.tables.arrays import one_array


@dataclass(frozen=True)
class Trajectories:
    """The rows of a step table, grouped by trajectory and ordered by step."""

    ids: list[str]
    """Sorted trajectory ids; trajectory ``i`` is ``ids[i]``."""
    order: np.ndarray
    """int64[rows]: table rows, trajectory after trajectory, step after step."""
    offsets: np.ndarray
    """int64[trajectories + 1]: trajectory ``i`` is ``order[offsets[i]:offsets[i + 1]]``."""

    @property
    def first_rows(self) -> np.ndarray:
        """int64[trajectories]: the table row of each trajectory's first step."""
        return self.order[self.offsets[:-1]]

    @property
    def last_rows(self) -> np.ndarray:
        """int64[trajectories]: the table row of each trajectory's last step."""
        return self.order[self.offsets[1:] - 1]

    @property
    def of_row(self) -> np.ndarray:
        """int64[rows]: the trajectory that each table row belongs to."""
        result = np.empty(len(self.order), np.int64)
        result[self.order] = np.repeat(np.arange(len(self.ids)), np.diff(self.offsets))
        return result

    @property
    def sorted(self) -> bool:
        """Whether the table is already in trajectory and step order."""
        return bool(np.array_equal(self.order, np.arange(len(self.order))))


def codes(column: pd.Series) -> tuple[np.ndarray, list[str]]:
    """A string column as int64[rows] codes into its sorted distinct values."""
    encoded = _encode(column)
    names = encoded.dictionary.to_pylist()
    ranks = np.empty(len(names), np.int64)
    by_name = sorted(range(len(names)), key=names.__getitem__)
    ranks[by_name] = np.arange(len(names))
    return ranks[_indices(encoded)], [names[index] for index in by_name]


def labels(column: pd.Series) -> np.ndarray:
    """A string column as int64[rows] labels 0, 1, … by first appearance; cheaper than `codes`."""
    return _indices(_encode(column))


def _encode(column: pd.Series) -> pa.DictionaryArray:
    return pc.dictionary_encode(one_array(pa.chunked_array(column.array.__arrow_array__())))


def _indices(encoded: pa.DictionaryArray) -> np.ndarray:
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def find_trajectories(frame: pd.DataFrame, table: str) -> Trajectories:
    """The trajectories of a conformed step table; errors call it ``table``.

    Raises:
        SchemaError: the steps of a trajectory are not 0, 1, 2, … (one is missing or duplicate).
    """
    trajectory, ids = codes(frame["trajectory_id"])
    step = frame["step_index"].to_numpy(dtype=np.int64)
    order = np.lexsort((step, trajectory))
    lengths = np.bincount(trajectory, minlength=len(ids))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    expected = np.arange(len(order)) - np.repeat(offsets[:-1], lengths)
    wrong = np.flatnonzero(step[order] != expected)
    if len(wrong):
        row = order[wrong[0]]
        raise SchemaError(
            f"table '{table}', row {row}: trajectory '{ids[trajectory[row]]}' has step {step[row]}"
            f" instead of step {expected[wrong[0]]}; steps must be 0, 1, 2, … without gaps"
        )
    return Trajectories(ids, order, offsets)


def in_order(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """The step table sorted by trajectory and step; a sorted table is returned unchanged."""
    trajectories = find_trajectories(frame, table)
    return frame if trajectories.sorted else _take(frame, trajectories.order)


def align(frame: pd.DataFrame, table: str, rollouts: pd.DataFrame) -> pd.DataFrame:
    """``frame`` with its rows in the order of ``rollouts``, step by step.

    Raises:
        SchemaError: the tables do not hold the same steps; the message names one trajectory.
    """
    keys = ["trajectory_id", "step_index"]
    if len(frame) == len(rollouts) and all(
        frame[key].array.__arrow_array__().equals(rollouts[key].array.__arrow_array__())
        for key in keys
    ):
        return frame
    ours, theirs = find_trajectories(frame, table), find_trajectories(rollouts, "rollouts")
    if ours.ids != theirs.ids or not np.array_equal(ours.offsets, theirs.offsets):
        raise SchemaError(_difference(ours, theirs, table))
    rows = np.empty(len(frame), np.int64)
    rows[theirs.order] = ours.order
    return _take(frame, rows)


def _difference(ours: Trajectories, theirs: Trajectories, table: str) -> str:
    steps = dict(zip(ours.ids, np.diff(ours.offsets), strict=True))
    wanted = dict(zip(theirs.ids, np.diff(theirs.offsets), strict=True))
    name = next(key for key in sorted({*steps, *wanted}) if steps.get(key) != wanted.get(key))
    return (
        f"table '{table}' does not hold the steps of 'rollouts': trajectory '{name}' has "
        f"{steps.get(name, 0)} rows there and {wanted.get(name, 0)} in 'rollouts'"
    )


def _take(frame: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    return frame.take(rows).reset_index(drop=True)

"""The differences between a recorded table and one computed again.

1. Rows are matched by (trajectory_id, step_index), whatever their position; in a table with a row
   per group, by group_id.
2. A step may have fewer or more rows than recorded (`ROWS`), or be in another position
   (`POSITION`). All other differences are values, column by column.
3. Values are equal or not; there is no tolerance. NaN is never equal; no table should hold one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from agent_r1 import schemas, tables

ROWS = "rows"
"""Used as the column name if a step has different numbers of rows; the values are counts."""
POSITION = "position"
"""Used as the column name if a row is in another position; the values are positions, from 0, among
the steps that both tables have."""

_STEP = ("trajectory_id", "step_index")
_GROUP = ("group_id",)
_CHARACTERS = (20, 60)
"""Long texts: characters shown before the first difference, and in total."""
_ELEMENTS = (3, 8)
"""Long lists: elements shown before the first difference, and in total."""

_Step = tuple[str, int | None]
_Row = dict[str, Any]
_Value = tuple[str, Any, Any]
"""A column and its recorded and replayed value."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that differs from the recorded one; ``str()`` gives one readable line."""

    trajectory_id: str
    """The id of the group if the table has a row per group."""
    step_index: int | None
    """None if the table has a row per group."""
    column: str
    """A column of the table, `ROWS` or `POSITION`."""
    recorded: Any
    """None if null was recorded."""
    replayed: Any

    def __str__(self) -> str:
        recorded = _shown(self.recorded, self.replayed)
        replayed = _shown(self.replayed, self.recorded)
        step = "" if self.step_index is None else f", step {self.step_index}"
        where = f"{self.trajectory_id}{step}, {self.column}"
        return f"{where}: recorded {recorded}, replayed {replayed}"


def compare_tables(recorded: pd.DataFrame, replayed: pd.DataFrame, table: str) -> list[Difference]:
    """All differences between two tables with a row per step, or per group.

    If a step has several rows in both tables, they are compared in order.

    Args:
        recorded: the saved table.
        replayed: the table computed from the same inputs.
        table: the schema of both: ``rollouts``, ``rewards``, ``sampled_groups`` …

    Returns:
        differences sorted by trajectory and step, then by column in the order of the schema.

    Raises:
        SchemaError: a table does not fit its schema.
    """
    ours, theirs = _by_step(recorded, table), _by_step(replayed, table)
    moved = _moved(ours, theirs)
    columns = [name for name in schemas.SCHEMAS[table].names if name not in _key(table)]
    found = []
    for step in sorted({*ours, *theirs}):
        mine, other = ours.get(step, []), theirs.get(step, [])
        values: list[_Value] = [(ROWS, len(mine), len(other))]
        values += [(POSITION, *moved.get(step, (0, 0)))]
        for a, b in zip(mine, other, strict=False):
            values += [(column, a[column], b[column]) for column in columns]
        found += [Difference(*step, column, a, b) for column, a, b in values if a != b]
    return found


def _by_step(frame: pd.DataFrame, table: str) -> dict[_Step, list[_Row]]:
    """The rows of each step; steps are in the order of their first rows."""
    steps: dict[_Step, list[_Row]] = {}
    name, *index = _key(table)
    for row in tables.to_arrow(frame, table, extra="drop").to_pylist():
        steps.setdefault((row[name], row[index[0]] if index else None), []).append(row)
    return steps


def _key(table: str) -> tuple[str, ...]:
    """The columns that identify a step, or a group."""
    return _STEP if _STEP[0] in schemas.SCHEMAS[table].names else _GROUP


def _moved(ours: Iterable[_Step], theirs: Iterable[_Step]) -> dict[_Step, tuple[int, int]]:
    """Steps whose position differs: (position in ``ours``, position in ``theirs``)."""
    order = {step: position for position, step in enumerate(theirs)}
    common = [step for step in ours if step in order]
    should = {step: rank for rank, step in enumerate(sorted(common, key=order.__getitem__))}
    return {
        step: (position, should[step])
        for position, step in enumerate(common)
        if position != should[step]
    }


def _shown(value: Any, other: Any) -> str:
    """A value on one line; of a long one, the part around its first difference from ``other``."""
    if value is None:
        return "null"
    if isinstance(value, str):
        begin, end = _window(value, other, *_CHARACTERS)
        return "…" * (begin > 0) + repr(value[begin:end]) + "…" * (end < len(value))
    if isinstance(value, list):
        begin, end = _window(value, other, *_ELEMENTS)
        before, after = ["…"] * (begin > 0), ["…"] * (end < len(value))
        inside = ", ".join([*before, *map(str, value[begin:end]), *after])
        return f"[{inside}] ({len(value)} values)"
    return str(value)


def _window(value: Sequence[Any], other: Any, before: int, width: int) -> tuple[int, int]:
    """Begin and end of the part of ``value`` that is shown."""
    first = 0
    if isinstance(other, type(value)):
        pairs = zip(value, other, strict=False)
        same = min(len(value), len(other))
        first = next((place for place, (a, b) in enumerate(pairs) if a != b), same)
    begin = max(0, first - before)
    return begin, min(len(value), begin + width)

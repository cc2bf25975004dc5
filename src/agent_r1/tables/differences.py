"""Where two tables differ: the recorded one, and what was computed anew.

1. Rows belong together by (trajectory_id, step_index), wherever they stand; in a table that has a
   row per group by group_id.
2. A step may lack a row or have too many (`ROWS`), or stand in the wrong place (`POSITION`); the
   rest are differences of values, column by column.
3. Values are equal or not; there is no tolerance. A NaN equals nothing: no table should hold one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from agent_r1 import schemas, tables

ROWS = "rows"
"""Stands for the column where a step has different numbers of rows; values are counts."""
POSITION = "position"
"""Stands for the column where a row is in another place; values count, from 0, the steps that both
tables have."""

_STEP = ("trajectory_id", "step_index")
_GROUP = ("group_id",)
_CHARACTERS = (20, 60)
"""Of a long text: how many are shown before the first difference, and how many in all."""
_ELEMENTS = (3, 8)
"""The same of a long list."""

_Step = tuple[str, int | None]
_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not what was recorded; ``str()`` is a line for people."""

    trajectory_id: str
    """Of a whole group: its id."""
    step_index: int | None
    """None for a whole group."""
    column: str
    """A column of the table, `ROWS` or `POSITION`."""
    recorded: Any
    """None where null was recorded."""
    replayed: Any

    def __str__(self) -> str:
        recorded = _shown(self.recorded, self.replayed)
        replayed = _shown(self.replayed, self.recorded)
        step = "" if self.step_index is None else f", step {self.step_index}"
        where = f"{self.trajectory_id}{step}, {self.column}"
        return f"{where}: recorded {recorded}, replayed {replayed}"


def compare_tables(recorded: pd.DataFrame, replayed: pd.DataFrame, table: str) -> list[Difference]:
    """Every difference between two tables that have a row per step, or per group.

    Of a step that has several rows on both sides, the first rows are compared with each other, and
    so on.

    Args:
        recorded: what was saved.
        replayed: what was computed from the same inputs.
        table: the schema of both: ``rollouts``, ``rewards``, ``sampled_groups`` …

    Returns:
        differences by trajectory, step and then column, in the order of the schema.

    Raises:
        SchemaError: a table does not fit its schema.
    """
    ours, theirs = _by_step(recorded, table), _by_step(replayed, table)
    moved = _moved(ours, theirs)
    columns = [name for name in schemas.SCHEMAS[table].names if name not in _key(table)]
    found = []
    for step in sorted({*ours, *theirs}):
        mine, other = ours.get(step, []), theirs.get(step, [])
        values = [(ROWS, len(mine), len(other)), (POSITION, *moved.get(step, (0, 0)))]
        for a, b in zip(mine, other, strict=False):
            values += [(column, a[column], b[column]) for column in columns]
        found += [Difference(*step, *value) for value in values if value[1] != value[2]]
    return found


def _by_step(frame: pd.DataFrame, table: str) -> dict[_Step, list[_Row]]:
    """The rows of each step, steps in the order of their first rows."""
    steps: dict[_Step, list[_Row]] = {}
    name, *index = _key(table)
    for row in tables.to_arrow(frame, table, extra="drop").to_pylist():
        steps.setdefault((row[name], row[index[0]] if index else None), []).append(row)
    return steps


def _key(table: str) -> tuple[str, ...]:
    """The columns that say which rows belong together."""
    return _STEP if _STEP[0] in schemas.SCHEMAS[table].names else _GROUP


def _moved(ours: Iterable[_Step], theirs: Iterable[_Step]) -> dict[_Step, tuple[int, int]]:
    """Steps of both that stand in different places: where, and where they should."""
    order = {step: position for position, step in enumerate(theirs)}
    common = [step for step in ours if step in order]
    should = {step: rank for rank, step in enumerate(sorted(common, key=order.__getitem__))}
    return {
        step: (position, should[step])
        for position, step in enumerate(common)
        if position != should[step]
    }


def _shown(value: Any, other: Any) -> str:
    """A value on one line, a long one around the place where ``other`` first differs."""
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
    """Begin and end of what is shown of ``value``."""
    first = 0
    if isinstance(other, type(value)):
        pairs = zip(value, other, strict=False)
        same = min(len(value), len(other))
        first = next((place for place, (a, b) in enumerate(pairs) if a != b), same)
    begin = max(0, first - before)
    return begin, min(len(value), begin + width)

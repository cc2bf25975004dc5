"""The ``metrics`` table of a training stage: one row per optimizer step and metric."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from agent_r1 import tables

OnStep = Callable[[int, dict[str, float]], None]
"""Called after each optimizer step, with its number and its metrics."""


class MetricLog:
    """Collects numbers by optimizer step, in the order in which they are added."""

    def __init__(self) -> None:
        self._rows: list[dict[str, object]] = []

    def add(self, step: int, **values: float) -> None:
        """Record one value per metric for an optimizer step."""
        self._rows += [
            {"step": step, "metric": name, "value": float(value)} for name, value in values.items()
        ]

    def table(self) -> pd.DataFrame:
        """What was recorded, as a table of schema ``metrics``."""
        return tables.from_rows(self._rows, "metrics")


def with_values(table: pd.DataFrame, **values: float) -> pd.DataFrame:
    """A ``metrics`` table with further values of the whole update, at step 0."""
    log = MetricLog()
    log.add(0, **values)
    return tables.conform(pd.concat([table, log.table()], ignore_index=True), "metrics")


class Totals:
    """Numbers of one optimizer step, added up over its micro-batches."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._means: dict[str, float] = {}
        self._largest: dict[str, float] = {}

    def sums(self, **values: float) -> None:
        """Shares of a number."""
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def means(self, **values: float) -> None:
        """Sums over tokens of numbers that are reported as means over them."""
        for name, value in values.items():
            self._means[name] = self._means.get(name, 0.0) + value

    def largest(self, **values: float) -> None:
        """Candidates for a maximum."""
        for name, value in values.items():
            self._largest[name] = max(self._largest.get(name, value), value)

    def values(self, tokens: int) -> dict[str, float]:
        """All of them by name; ``tokens`` is what the means are over."""
        means = {name: value / tokens for name, value in self._means.items()}
        return {**self._sums, **means, **self._largest}

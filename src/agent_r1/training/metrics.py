"""The ``metrics`` table of a training stage: one row per optimizer step and metric."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from agent_r1 import tables

OnStep = Callable[[int, dict[str, float]], None]
"""Called after each optimizer step with its number and metrics."""


class MetricLog:
    """Collects metrics per optimizer step, in the order of the calls."""

    def __init__(self) -> None:
        self._rows: list[dict[str, object]] = []

    def add(self, step: int, **values: float) -> None:
        """Record one value per metric for an optimizer step."""
        self._rows += [
            {"step": step, "metric": name, "value": float(value)} for name, value in values.items()
        ]

    def table(self) -> pd.DataFrame:
        """The recorded values as a table of schema ``metrics``."""
        return tables.from_rows(self._rows, "metrics")


def with_values(table: pd.DataFrame, **values: float) -> pd.DataFrame:
    """``table`` with additional metrics of the whole update, at step 0."""
    log = MetricLog()
    log.add(0, **values)
    return tables.conform(pd.concat([table, log.table()], ignore_index=True), "metrics")


class Totals:
    """The metrics of one optimizer step, accumulated over its micro-batches."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._means: dict[str, float] = {}
        self._largest: dict[str, float] = {}

    def sums(self, **values: float) -> None:
        """Add this micro-batch's share of a sum."""
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + value

    def means(self, **values: float) -> None:
        """Add this micro-batch's sum over tokens of a metric that is reported as a mean."""
        for name, value in values.items():
            self._means[name] = self._means.get(name, 0.0) + value

    def largest(self, **values: float) -> None:
        """Update a maximum."""
        for name, value in values.items():
            self._largest[name] = max(self._largest.get(name, value), value)

    def values(self, tokens: int) -> dict[str, float]:
        """Metric name → value; means are over ``tokens`` tokens."""
        means = {name: value / tokens for name, value in self._means.items()}
        return {**self._sums, **means, **self._largest}

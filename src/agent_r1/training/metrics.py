"""The ``metrics`` table of a training stage: one row per optimizer step and metric."""

from __future__ import annotations

import pandas as pd

from agent_r1 import schemas


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
        return schemas.from_rows(self._rows, "metrics")

"""Read the column ``tool_results`` of the rollouts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agent_r1.rewards.base import Steps
from agent_r1.schemas import SchemaError


def results_by_row(steps: Steps, *keys: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The row number and the tool results of each row that has results.

    Args:
        steps: the steps to read.
        keys: keys that each result must have.

    Raises:
        SchemaError: a row's ``tool_results`` is not a JSON list of objects with these keys.
    """
    for row, text in enumerate(steps.tool_results):
        if text == "[]":
            continue
        try:
            results = json.loads(text)
            for result in results:
                for key in keys:
                    result[key]
        except (ValueError, TypeError, KeyError) as error:
            raise SchemaError(
                f"table 'rollouts', row {row}: tool_results is not a JSON list of results: {error}"
            ) from None
        yield row, results

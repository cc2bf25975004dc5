"""The experiment's history → its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from agent_r1.datasets import History
from agent_r1.pipelines.report.nodes import build_report


def create_pipeline(after: Sequence[str] = ()) -> Pipeline:
    """The figure, the HTML page and the summary, from all committed tables.

    Args:
        after: datasets that must exist first, if their nodes are in the same pipeline.
    """

    def report(
        history: History,
        tasks: pd.DataFrame,
        demonstrations: pd.DataFrame,
        parameters: dict[str, Any],
        *_: Any,
    ) -> tuple[Any, str, dict[str, Any]]:
        return build_report(
            history=history, tasks=tasks, demonstrations=demonstrations, parameters=parameters
        )

    shared = {name: name for name in ("history", "tasks", "demonstrations")}
    # Input names of a node have no dots; the pipeline maps them.
    aliases = {name.replace(".", "_"): name for name in after}
    return Pipeline(
        [
            Node(
                report,
                inputs=["history", "tasks", "demonstrations", "parameters", *aliases],
                outputs=["learning_curves_figure", "report_html", "summary"],
                name="build_report",
            )
        ],
        inputs={**shared, **aliases},
    )

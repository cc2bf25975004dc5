"""Node: report an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from agent_r1.datasets import History
from agent_r1.pipelines.report.exposure import measure_exposure
from agent_r1.pipelines.report.figure import draw_learning_curves
from agent_r1.pipelines.report.page import render_page
from agent_r1.pipelines.report.results import read_results, summarize


def build_report(
    history: History,
    tasks: pd.DataFrame,
    demonstrations: pd.DataFrame,
    parameters: Mapping[str, Any],
) -> tuple[Figure, str, dict[str, Any]]:
    """The learning curves, the HTML page, and ``summary.json``.

    Args:
        history: the committed tables ``rewards``, ``update_metrics``, ``evaluation`` and
            ``validation`` of all iterations, and the run times of the nodes.
        tasks: all tasks; the report counts the held-out entities that occurred in training.
        demonstrations: the training data of the warm start.
        parameters: all parameters.
    """
    results = read_results(history, parameters["experiment"])
    figure = draw_learning_curves(results)
    page = render_page(results, measure_exposure(tasks, demonstrations), figure, parameters)
    return figure, page, summarize(results)

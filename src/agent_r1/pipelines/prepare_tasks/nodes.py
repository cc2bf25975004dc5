"""The node that makes the tasks."""

from __future__ import annotations

import pandas as pd

from agent_r1.tasks.multihop import build_tasks
from agent_r1.tasks.parameters import TasksParameters


def prepare_tasks(
    countries: pd.DataFrame,
    cities: pd.DataFrame,
    elements: pd.DataFrame,
    parameters: TasksParameters,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables ``tasks`` and ``documents``; see `agent_r1.tasks.multihop.build_tasks`.

    The experiment's seed is no input: splits have a seed of their own (``tasks.split_seed``), so
    that experiments with different seeds are compared on the same questions.
    """
    return build_tasks(countries, cities, elements, parameters)

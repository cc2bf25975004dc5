"""Node: build the tasks."""

from __future__ import annotations

import pandas as pd

from agent_r1.tasks.files import TaskFiles
from agent_r1.tasks.parameters import TasksParameters
from agent_r1.tasks.preparation import load_tasks


def prepare_tasks(
    countries: pd.DataFrame,
    cities: pd.DataFrame,
    elements: pd.DataFrame,
    parameters: TasksParameters,
    environment: str = "multihop_qa",
    files: TaskFiles | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables ``tasks`` and ``documents``; see `agent_r1.tasks.preparation.load_tasks`.

    The experiment's seed is not an input: splits have their own seed (``tasks.split_seed``), so
    experiments with different seeds are compared on the same questions.

    Args:
        countries, cities, elements: the knowledge base; ignored by other sources.
        parameters: the group ``tasks``.
        environment: ``environment.name``; selects the source unless ``tasks.sources`` is set.
        files: loaded by `agent_r1.datasets.TaskFilesDataset`.
    """
    return load_tasks(
        parameters,
        environment,
        (countries, cities, elements),
        files or TaskFiles(),
    )

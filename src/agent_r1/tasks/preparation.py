"""The task table of an experiment: one source, or a mixture of several.

1. If ``tasks.sources`` is empty, the default source of the environment is used.
2. `shares` computes how many tasks of each split each source should give. The source loads as many
   of them as it has.
3. The tasks of all sources become one table, interleaved within each split. The column
   ``environment`` names the environment that plays a task, so later stages need not know that the
   tasks are a mixture.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pandas as pd

from agent_r1 import tables
from agent_r1.tasks.choices import SplitSizes
from agent_r1.tasks.files import TaskFileError, TaskFiles
from agent_r1.tasks.parameters import TasksParameters
from agent_r1.tasks.registry import default_source, find_source
from agent_r1.tasks.source import SourceInputs, SourceParameters, Tables, merge


def load_tasks(
    parameters: TasksParameters,
    environment: str,
    knowledge_base: Sequence[pd.DataFrame],
    files: TaskFiles,
) -> Tables:
    """The tables ``tasks`` and ``documents``.

    Args:
        parameters: the group ``tasks``.
        environment: ``environment.name``; decides the source if the parameters name none.
        knowledge_base: countries, cities and elements.
        files: finds the files of file sources.

    Raises:
        ParameterError: the parameters name no source, and the environment has no default source.
        MissingExtraError: a source's package is not installed.
        TaskFileError, KnowledgeBaseError: a file is missing or malformed, two tasks have the same
            id, or a payload is not a JSON object.
        SchemaError: the tables of a source do not fit their schemas.
    """
    chosen = chosen_sources(parameters, environment)
    by_source = {}
    for name, sizes in shares(parameters.sizes, chosen).items():
        source, own = find_source(name), chosen[name]
        inputs = SourceInputs(
            own,
            parameters.model_copy(update={"sizes": sizes}),
            own.environment or source.environment,
            tuple(knowledge_base),
            files,
        )
        by_source[name] = source.load(inputs)
    tasks, documents = merge(by_source)
    tasks = tables.conform(tasks, "tasks", extra="error")
    _refuse_duplicates(tasks)
    _check_payloads(tasks)
    return tasks, documents


def _refuse_duplicates(tasks: pd.DataFrame) -> None:
    """Two sources, or two files of one source, may contain the same task. Then a training task
    could be reported as held out."""
    twins = tasks[tasks["task_id"].duplicated(keep=False)]
    if not twins.empty:
        name = twins["task_id"].iloc[0]
        splits = ", ".join(sorted(twins["split"][twins["task_id"] == name]))
        raise TaskFileError(
            f"tasks.sources: several tasks have the id '{name}' (splits: {splits}); each task must "
            "be in one source and one file only"
        )


def _check_payloads(tasks: pd.DataFrame) -> None:
    """Environments, the scripted agent and the report parse payloads. Fail now, not after hours."""
    for name, text in zip(tasks["task_id"], tasks["payload"], strict=True):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise TaskFileError(
                f"tasks.sources: the payload of task '{name}' must be a JSON object, at least "
                f"'{{}}', but is {text!r:.80}"
            )


def chosen_sources(parameters: TasksParameters, environment: str) -> dict[str, SourceParameters]:
    """Name → parameters of the sources to load.

    Raises:
        ParameterError: the parameters name no source, and the environment has no default source.
    """
    if parameters.sources:
        return dict(parameters.sources)
    name = default_source(environment)
    return {name: find_source(name).parameters()}


def shares(sizes: SplitSizes, sources: Mapping[str, SourceParameters]) -> dict[str, SplitSizes]:
    """The number of tasks of each split that each source should give. They sum to the split's size.

    A file source gives nothing to a split for which it names no file. The others share that split.
    """
    wanted: dict[str, dict[str, int]] = {name: {} for name in sources}
    for split, size in sizes.model_dump().items():
        takers = {name: own.share if own.gives(split) else 0.0 for name, own in sources.items()}
        total, given, passed = sum(takers.values()), 0, 0.0
        for name, share in takers.items():
            passed += share
            # Round the border between two sources, not each share: the sum stays exact.
            border = round(size * passed / total) if total else 0
            wanted[name][split] = border - given
            given = border
    return {name: SplitSizes(**of_split) for name, of_split in wanted.items()}

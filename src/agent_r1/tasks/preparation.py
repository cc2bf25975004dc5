"""The task table of an experiment: one source, or a mixture of several.

1. Without ``tasks.sources`` there is one: the default of the environment that is played.
2. Each source is asked for its share of every split (`shares`), and loads what it has.
3. What they give becomes one table, sources in turn within each split. The column ``environment``
   says who plays a task: a mixture is data, and no stage after this knows of it.
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
        environment: ``environment.name``; decides the source where the parameters name none.
        knowledge_base: countries, cities and elements.
        files: where file sources find theirs.

    Raises:
        ParameterError: no source is made for the environment.
        MissingExtraError: a source's package is not installed.
        TaskFileError, KnowledgeBaseError: a file is missing or malformed, two tasks have the same
            id, or a payload is no JSON object.
        SchemaError: what a source gives does not fit the tables' schemas.
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
    _refuse_twins(tasks)
    _check_payloads(tasks)
    return tasks, documents


def _refuse_twins(tasks: pd.DataFrame) -> None:
    """Two sources, or two files of one, may have the same question; what is trained on would be
    reported as held out."""
    twins = tasks[tasks["task_id"].duplicated(keep=False)]
    if not twins.empty:
        name = twins["task_id"].iloc[0]
        splits = ", ".join(sorted(twins["split"][twins["task_id"] == name]))
        raise TaskFileError(
            f"tasks.sources: several tasks have the id '{name}' (splits: {splits}); each must "
            "stand in one source and one file"
        )


def _check_payloads(tasks: pd.DataFrame) -> None:
    """Environments, the scripted agent and the report read them, the report after hours."""
    for name, text in zip(tasks["task_id"], tasks["payload"], strict=True):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise TaskFileError(
                f"tasks.sources: the payload of task '{name}' must be a JSON object, at least "
                f"'{{}}', and is {text!r:.80}"
            )


def chosen_sources(parameters: TasksParameters, environment: str) -> dict[str, SourceParameters]:
    """The sources that are loaded, with their parameters.

    Raises:
        ParameterError: none is named, and none is made for the environment.
    """
    if parameters.sources:
        return dict(parameters.sources)
    name = default_source(environment)
    return {name: find_source(name).parameters()}


def shares(sizes: SplitSizes, sources: Mapping[str, SourceParameters]) -> dict[str, SplitSizes]:
    """What each source is asked for: its share of each split, rounded so that they sum to it.

    A file source has nothing to give to splits for which it names no file; those are shared among
    the others.
    """
    wanted: dict[str, dict[str, int]] = {name: {} for name in sources}
    for split, size in sizes.model_dump().items():
        takers = {name: own.share if own.gives(split) else 0.0 for name, own in sources.items()}
        total, given, passed = sum(takers.values()), 0, 0.0
        for name, share in takers.items():
            passed += share
            # The border between two sources is rounded once, so nothing is lost between them.
            border = round(size * passed / total) if total else 0
            wanted[name][split] = border - given
            given = border
    return {name: SplitSizes(**of_split) for name, of_split in wanted.items()}

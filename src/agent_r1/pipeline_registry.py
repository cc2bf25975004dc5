"""The pipelines by name.

==================  ================================================================
``prepare_tasks``   knowledge base, task files → ``tasks``, ``documents``
``base``            ``model.path`` → ``base.policy``, and its evaluation
``demonstrations``  tasks → ``demonstrations``
``iter_00000``      SFT → the policy that RL starts from, and its evaluation
``iter_NNNNN``      iteration N of RL; built on request
``report``          what is committed → figure, HTML, summary
``knowledge_base``  rebuilds ``data/01_raw/knowledge_base``; not part of an experiment
``pretrain``        rebuilds the tiny base model; not part of an experiment
``__default__``     an experiment of one iteration as one DAG, for Kedro-Viz
==================  ================================================================

``kedro run`` without a pipeline runs them one after another (`agent_r1.experiments.driver`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from kedro.pipeline import Pipeline

_ITERATION = re.compile(r"iter_(\d{5,})")


class PipelineRegistry(dict[str, Any]):
    """Name → pipeline, each built on first access.

    Listing the names imports no stage, so `kedro registry list` does not import torch. Iterations
    are not listed, because every number is one.
    """

    def __getitem__(self, name: str) -> Pipeline:
        value = super().__getitem__(name)  # an unknown name goes to __missing__
        if not isinstance(value, Pipeline):
            value = value()
            self[name] = value
        return value

    def __missing__(self, name: str) -> Pipeline:
        match = _ITERATION.fullmatch(name)
        if match is None or int(match[1]) == 0:
            raise KeyError(name)
        return _iteration(int(match[1]))


def _built_by(package: str, function: str = "create_pipeline", **arguments: Any) -> Callable:
    """A function that imports a stage's module and builds its pipeline."""

    def build() -> Pipeline:
        module = import_module(f"agent_r1.{package}.pipeline")
        return getattr(module, function)(**arguments)

    return build


def _iteration(index: int) -> Pipeline:
    return _built_by("pipelines.iteration", index=index)()


def _whole_experiment() -> Pipeline:
    names = ("prepare_tasks", "base", "demonstrations", "iter_00000")
    evaluations = [f"{name}.evaluation" for name in ("base", "iter_00000", "iter_00001")]
    report = _built_by("pipelines.report", after=[*evaluations, "iter_00001.update_metrics"])
    return sum((_BUILDERS[name]() for name in names), start=_iteration(1) + report())


_BUILDERS: dict[str, Callable[[], Pipeline]] = {
    "prepare_tasks": _built_by("pipelines.prepare_tasks"),
    "base": _built_by("pipelines.sft", "create_base"),
    "demonstrations": _built_by("pipelines.demonstrations"),
    "iter_00000": _built_by("pipelines.sft"),
    "report": _built_by("pipelines.report"),
    "knowledge_base": _built_by("shipped.knowledge_base"),
    "pretrain": _built_by("shipped.pretraining"),
    "__default__": _whole_experiment,
}


def register_pipelines() -> PipelineRegistry:
    """Kedro's entry point."""
    return PipelineRegistry(_BUILDERS)


def producer_command(dataset: str, experiment: str) -> str:
    """The command that makes a dataset of an experiment, for error messages."""
    from kedro.framework.project import pipelines

    namespace = dataset.rpartition(".")[0]
    for name in (namespace,) if namespace else sorted(set(pipelines) - {"__default__"}):
        nodes = pipelines[name].nodes if name in pipelines else ()
        for node in nodes:
            if dataset in node.outputs:
                only = f"--pipelines {name} --nodes {node.name}"
                return f"kedro run {only} --params experiment={experiment}"
    return f"kedro run --params experiment={experiment}"

"""Knowledge base or task files → tasks and documents."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from agent_r1.pipelines.namespaces import one_node
from agent_r1.pipelines.prepare_tasks.nodes import prepare_tasks


def create_pipeline() -> Pipeline:
    """``tasks`` with all their splits, and the ``documents`` that the search tool reads."""
    inputs = "countries cities elements params:tasks params:environment.name task_files"
    return one_node(prepare_tasks, inputs, "tasks documents")

"""Knowledge base or task files → tasks and documents."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.pipelines.prepare_tasks.nodes import prepare_tasks


def create_pipeline() -> Pipeline:
    """``tasks`` with all their splits, and the ``documents`` that the search tool reads."""
    return Pipeline(
        [
            Node(
                prepare_tasks,
                inputs=[
                    "countries",
                    "cities",
                    "elements",
                    "params:tasks",
                    "params:environment.name",
                    "task_files",
                ],
                outputs=["tasks", "documents"],
                name="prepare_tasks",
            )
        ]
    )

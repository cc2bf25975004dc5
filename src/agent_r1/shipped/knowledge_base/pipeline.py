"""Source packages → the tables in `data/01_raw/knowledge_base`."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.shipped.knowledge_base.nodes import build_cities, build_countries, build_elements


def create_pipeline() -> Pipeline:
    """The pipeline that rebuilds the knowledge base. It is not part of an experiment."""
    inputs = ["countries", "params:knowledge_base"]
    return Pipeline(
        [
            Node(build_countries, None, "countries", name="build_countries"),
            Node(build_cities, inputs, "cities", name="build_cities"),
            Node(build_elements, None, "elements", name="build_elements"),
        ]
    )

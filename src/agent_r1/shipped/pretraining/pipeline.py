"""Place names → fictional worlds → the tiny base model in ``data/01_raw/tiny_base``."""

from __future__ import annotations

from kedro.pipeline import Node, Pipeline

from agent_r1.shipped.pretraining.nodes import build_place_names, pretrain_base


def create_pipeline() -> Pipeline:
    """The pipeline that rebuilds the tiny base model. It is not part of an experiment."""
    knowledge, inputs = ["countries", "cities", "elements"], ["place_names", "params:pretrain"]
    names = Node(build_place_names, knowledge, "place_names", name="build_place_names")
    return Pipeline([names, Node(pretrain_base, inputs, "tiny_base", name="pretrain_base")])

"""How the instances of modular pipelines are called, and how they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kedro.pipeline import Node, Pipeline


def iteration_name(index: int) -> str:
    """``iter_00003``: zero-padded, so that names sort as numbers do."""
    return f"iter_{index:05d}"


def full_iteration(text: str) -> str:
    """What a user means by ``3``, ``iter_00003`` or ``base``."""
    return iteration_name(int(text)) if text.isdigit() else text


def instance(
    parts: Sequence[Node | Pipeline], namespace: str, inputs: Mapping[str, str]
) -> Pipeline:
    """The parts as one pipeline in a namespace.

    Args:
        parts: nodes and pipelines without a namespace.
        namespace: put before the names of nodes and datasets. Parameters keep their names: all
            instances share them.
        inputs: free inputs of the parts → the names that they have outside.
    """
    template = Pipeline(parts)
    parameters = {name for name in template.inputs() if name.startswith("params:")}
    return Pipeline(template, namespace=namespace, inputs=dict(inputs), parameters=parameters)

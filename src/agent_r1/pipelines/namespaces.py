"""Names and construction of the instances of modular pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kedro.pipeline import Node, Pipeline


def iteration_name(index: int) -> str:
    """``iter_00003``: zero-padded, so that names sort like numbers."""
    return f"iter_{index:05d}"


def full_iteration(text: str) -> str:
    """The full name: ``3`` → ``iter_00003``; other texts are unchanged."""
    return iteration_name(int(text)) if text.isdigit() else text


def instance(
    parts: Sequence[Node | Pipeline], namespace: str, inputs: Mapping[str, str]
) -> Pipeline:
    """The parts as one pipeline in a namespace.

    Args:
        parts: nodes and pipelines without a namespace.
        namespace: prefix of node and dataset names. Parameters keep their names: all instances
            share them.
        inputs: free input of the parts → its name outside the namespace.
    """
    template = Pipeline(parts)
    parameters = {name for name in template.inputs() if name.startswith("params:")}
    return Pipeline(template, namespace=namespace, inputs=dict(inputs), parameters=parameters)

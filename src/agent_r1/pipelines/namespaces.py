"""Names of iterations, and the construction of stages and of instances of modular pipelines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, update_wrapper
from typing import Any

from kedro.pipeline import Node, Pipeline


def iteration_name(index: int) -> str:
    """``iter_00003``: zero-padded, so that names sort like numbers."""
    return f"iter_{index:05d}"


def full_iteration(text: str) -> str:
    """The full name: ``3`` → ``iter_00003``; other texts are unchanged."""
    return iteration_name(int(text)) if text.isdigit() else text


def one_node(function: Callable[..., Any], inputs: str, outputs: str, **fixed: Any) -> Pipeline:
    """A stage: a pipeline of one node, which has the name of its function.

    Args:
        function: called with the inputs, in order.
        inputs, outputs: names of datasets, separated by spaces.
        fixed: keyword arguments that are not datasets.
    """
    call = update_wrapper(partial(function, **fixed), function) if fixed else function
    names = outputs.split() if " " in outputs else outputs
    return Pipeline([Node(call, inputs.split(), names, name=function.__name__)])


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

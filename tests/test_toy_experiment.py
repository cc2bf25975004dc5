"""The nodes of the toy experiment are called as the real ones are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from agent_r1.pipeline_registry import register_pipelines
from tests.support.toy_experiment import toy_modules

TOYS = {
    (module, name): function
    for module, toys in toy_modules().items()
    for name, function in vars(toys).items()
    if inspect.isfunction(function)
}
"""(module, name) of a real node → the toy that replaces it."""


def parameters(function: Callable[..., Any]) -> list[tuple[str, str, object]]:
    """Name, kind and default of each parameter."""
    signature = inspect.signature(function)
    return [(each.name, str(each.kind), each.default) for each in signature.parameters.values()]


@pytest.mark.parametrize(("module", "name"), TOYS, ids=[name for _, name in TOYS])
def test_a_toy_has_the_parameters_of_the_node(module: str, name: str) -> None:
    real = getattr(import_module(module), name)
    assert parameters(TOYS[module, name]) == parameters(real)


def test_every_node_of_an_experiment_has_a_toy() -> None:
    pipelines = register_pipelines()
    names = ("prepare_tasks", "base", "demonstrations", "iter_00000", "iter_00001", "report")
    functions = [node.func for name in names for node in pipelines[name].nodes]
    nodes = {(function.__module__, function.__name__) for function in functions}
    real = {node for node in nodes if node[0].endswith(".nodes")}
    assert len(real) >= 10
    assert real <= set(TOYS)
    # The other one is defined beside its pipeline, and calls a node.
    assert {name for module, name in nodes - real} <= {"report"}

"""The real nodes as Kedro calls them: a group of plain values becomes the model of the hint."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints

from agent_r1.configuration.groups import GROUPS
from agent_r1.parameters import Parameters
from agent_r1.pipelines.demonstrations import nodes as demonstrations
from agent_r1.pipelines.evaluation import nodes as evaluation
from agent_r1.pipelines.logprobs import nodes as logprobs
from agent_r1.pipelines.prepare_tasks import nodes as prepare
from agent_r1.pipelines.rollout import nodes as rollout
from agent_r1.pipelines.sft import nodes as sft
from agent_r1.pipelines.update import nodes as update

GROUP_OF = {pkgutil.resolve_name(path): group for group, path in GROUPS.items()}


def as_kedro_calls(node: Callable[..., Any]) -> Callable[..., Any]:
    """The node, for groups of plain values."""
    signature, hints = inspect.signature(node), get_type_hints(node)
    models = {name: hint for name, hint in hints.items() if hint in GROUP_OF}
    assert all(issubclass(model, Parameters) for model in models.values())

    @wraps(node)
    def call(*inputs: Any, **named: Any) -> Any:
        bound = signature.bind(*inputs, **named)
        for name in models.keys() & bound.arguments.keys():
            model = models[name]
            bound.arguments[name] = model.read(bound.arguments[name], GROUP_OF[model])
        return node(*bound.args, **bound.kwargs)

    return call


build_demonstrations = as_kedro_calls(demonstrations.build_demonstrations)
compute_logprobs = as_kedro_calls(logprobs.compute_logprobs)
evaluate_policy = as_kedro_calls(evaluation.evaluate_policy)
generate_rollouts = as_kedro_calls(rollout.generate_rollouts)
import_policy = as_kedro_calls(sft.import_policy)
prepare_tasks = as_kedro_calls(prepare.prepare_tasks)
train_sft = as_kedro_calls(sft.train_sft)
update_policy = as_kedro_calls(update.update_policy)
validate_policy = as_kedro_calls(evaluation.validate_policy)

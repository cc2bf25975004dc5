"""The top level of the parameters in ``conf/``: every group and its model.

1. The configuration loader (`agent_r1.configuration.presets`) merges the files and validates the
   whole here, before any work starts: a misspelt key costs a second and not an hour.
2. Kedro makes each group that a node's hint names into its model, from the values of step 1.
3. The hooks record those values, with all defaults in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from agent_r1.configuration.experiment_parameters import ExperimentParameters
from agent_r1.lineage.branches import flatten, nested, without_retired
from agent_r1.parameters import ParameterError, Parameters, Problem

GROUPS: dict[str, str] = {
    "model": "agent_r1.training.policy:ModelParameters",
    "tasks": "agent_r1.tasks.parameters:TasksParameters",
    "environment": "agent_r1.environments.base:EnvironmentParameters",
    "chat": "agent_r1.chat:ChatParameters",
    "demonstrations": "agent_r1.tasks.demonstrations:DemonstrationParameters",
    "sft": "agent_r1.training.sft:SftParameters",
    "rollout": "agent_r1.rollout:RolloutParameters",
    "reward": "agent_r1.rewards:RewardParameters",
    "logprobs": "agent_r1.training.logprobs:LogprobParameters",
    "advantage": "agent_r1.advantages:AdvantageParameters",
    "update": "agent_r1.training.update_parameters:UpdateParameters",
    "evaluation": "agent_r1.pipelines.evaluation.parameters:EvaluationParameters",
    "stop": "agent_r1.configuration.experiment_parameters:StopParameters",
    "mlflow": "agent_r1.configuration.experiment_parameters:MlflowParameters",
    "retention": "agent_r1.lineage.retention:RetentionParameters",
    "pretrain": "agent_r1.shipped.pretraining.train:PretrainParameters",
    "knowledge_base": "agent_r1.shipped.knowledge_base.nodes:KnowledgeBaseParameters",
}
"""Group → ``module:model``. Imported when parameters are read, not when the CLI starts."""


def read_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Validate all parameters, and fill in the defaults.

    Args:
        values: the merged content of ``conf/*/parameters*.yml`` and ``--params``.

    Returns:
        Name in ``conf/`` → plain value, or the plain values of a group.

    Raises:
        ParameterError: an unknown group or key (the nearest known one is named), or a bad value;
            all problems at once.
    """
    scalars = ExperimentParameters.known_keys()
    known = (*GROUPS, *scalars)
    problems = [
        Problem("unknown parameter", key, known=known) for key in sorted(set(values) - set(known))
    ]
    read: dict[str, Any] = {}
    with _collected(problems):
        top = {key: value for key, value in values.items() if key in scalars}
        read |= ExperimentParameters.read(top).model_dump()
    for name in GROUPS:
        with _collected(problems):
            read[name] = _group(name, values.get(name))
    if problems:
        raise ParameterError(*problems)
    return read


def plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What `read_parameters` gave, from a catalog: Kedro made some groups into their models."""
    return {
        key: value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        for key, value in parameters.items()
    }


def lookup(parameters: Mapping[str, Any], name: str) -> Any:
    """The value of a Kedro input such as ``params:rollout.temperature`` or ``parameters``."""
    if name == "parameters":
        return parameters
    value: Any = parameters
    for part in name.removeprefix("params:").split("."):
        value = value[part]
    return value


def recorded_parameters(flat: Mapping[str, Any]) -> dict[str, Any]:
    """What an experiment's recorded parameters mean to this version of the program.

    A parameter that is newer than the experiment has its default, which means what was done before
    there was a choice. One that no longer exists is left out if its value means what is done now.
    Records that cannot be read (something that they name is gone) are given as they are.

    Args:
        flat: by dotted names, as branches record them.
    """
    kept = without_retired(flat)
    try:
        return flatten(read_parameters(nested(kept)))
    except ParameterError:
        return kept


def _group(name: str, values: Any) -> dict[str, Any]:
    """Plain values of a group, with the defaults of an environment's own options too."""
    from agent_r1.environments.base import EnvironmentParameters
    from agent_r1.environments.registry import with_defaults

    module, _, model = GROUPS[name].partition(":")
    group: Parameters = getattr(import_module(module), model).read(values, name)
    if isinstance(group, EnvironmentParameters):
        group = with_defaults(group)
    return group.model_dump(mode="json")


@contextmanager
def _collected(problems: list[Problem]) -> Iterator[None]:
    """In this block, what is refused is added to the problems."""
    try:
        yield
    except ParameterError as error:
        problems += error.problems

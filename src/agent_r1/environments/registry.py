"""Environments by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_r1.environments.base import BaseEnv, EnvironmentOptions, EnvironmentParameters
from agent_r1.environments.resources import Resources
from agent_r1.extras import named_object
from agent_r1.parameters import ParameterError

ENVIRONMENTS: dict[str, str] = {
    "gymnasium": "agent_r1.environments.gymnasium:GymnasiumEnv",
    "multihop_qa": "agent_r1.environments.multihop_qa:MultihopQAEnv",
    "textworld": "agent_r1.environments.textworld:TextWorldEnv",
    "math": "agent_r1.environments.math:MathEnv",
    "code": "agent_r1.environments.code:CodeEnv",
}
"""Name → import path; imported when asked for."""


def environment_class(name: str) -> type[BaseEnv]:
    """The class that a name or an import path (``package.module:Class``) stands for.

    Raises:
        ParameterError: as `named_object`, or it is not a subclass of `BaseEnv`.
    """
    found = named_object("environment", name, ENVIRONMENTS, object)
    if not (isinstance(found, type) and issubclass(found, BaseEnv)):
        raise ParameterError(f"environment '{name}' is not a subclass of BaseEnv: {found!r}")
    return found


def check_environment(parameters: EnvironmentParameters) -> EnvironmentOptions:
    """The environment's validated options: what a stage checks before it starts any work.

    Raises:
        ParameterError: an environment that is named is unknown, or one of its options is.
    """
    return environment_options(parameters)[parameters.name]


def environment_options(parameters: EnvironmentParameters) -> dict[str, EnvironmentOptions]:
    """The validated options of all environments that are named, by name.

    Raises:
        ParameterError: one is unknown, or one of its options is.
    """
    options = {
        name: environment_class(name).Options.read(values, f"environment.others.{name}")
        for name, values in parameters.others.items()
    }
    main = environment_class(parameters.name)
    return options | {parameters.name: main.Options.read(parameters.options, "environment.options")}


def make_environment(
    name: str,
    task: Mapping[str, Any],
    resources: Resources | None = None,
    options: Mapping[str, Any] | EnvironmentOptions | None = None,
) -> BaseEnv:
    """A new episode of ``task`` in the environment called ``name``.

    Raises:
        ParameterError: the environment is unknown, or one of its options is.
    """
    return environment_class(name)(task, resources, options)


def with_defaults(parameters: EnvironmentParameters) -> EnvironmentParameters:
    """The same with the defaults of all options: what an experiment records.

    Raises:
        ParameterError: as `environment_options`.
    """
    every = environment_options(parameters)
    options = {name: own.model_dump(mode="json") for name, own in every.items()}
    others = {name: options[name] for name in parameters.others}
    return EnvironmentParameters(
        name=parameters.name, options=options[parameters.name], others=others
    )

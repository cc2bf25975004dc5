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
"""Name → import path; imported on first use."""


def environment_class(name: str) -> type[BaseEnv]:
    """The class with this registered name or import path (``package.module:Class``).

    Raises:
        ParameterError: as in `named_object`, or the class is not a subclass of `BaseEnv`.
    """
    found = named_object("environment", name, ENVIRONMENTS, object)
    if not (isinstance(found, type) and issubclass(found, BaseEnv)):
        raise ParameterError(f"environment '{name}' is not a subclass of BaseEnv: {found!r}")
    return found


def check_environment(parameters: EnvironmentParameters) -> EnvironmentOptions:
    """The validated options of the environment ``parameters.name``. A stage calls this before it
    starts any work.

    Raises:
        ParameterError: a named environment or one of its options is unknown or invalid.
    """
    return environment_options(parameters)[parameters.name]


def environment_options(parameters: EnvironmentParameters) -> dict[str, EnvironmentOptions]:
    """Name → validated options, for all named environments.

    Raises:
        ParameterError: a named environment or one of its options is unknown or invalid.
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
    """A new episode of ``task`` in the environment ``name``.

    Raises:
        ParameterError: the environment or one of its options is unknown or invalid.
    """
    return environment_class(name)(task, resources, options)


def with_defaults(parameters: EnvironmentParameters) -> EnvironmentParameters:
    """The parameters with the defaults of all options filled in, as an experiment records them.

    Raises:
        ParameterError: as in `environment_options`.
    """
    every = environment_options(parameters)
    options = {name: own.model_dump(mode="json") for name, own in every.items()}
    others = {name: options[name] for name in parameters.others}
    return EnvironmentParameters(
        name=parameters.name, options=options[parameters.name], others=others
    )

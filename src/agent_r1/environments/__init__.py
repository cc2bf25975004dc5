"""Environments: what an agent acts in. One file per benchmark.

1. A subclass of `BaseEnv` defines the first observation (`reset`), the agent's tools (`@tool`
   methods) and the effect of an action (`step`; the default runs the tool calls).
2. Only `make`, `start`, `transition` and `finish` call environments. They await coroutines, run
   blocking functions in threads, convert every allowed return shape into a `Transition`, and turn
   every failure into a recorded infrastructure failure.
3. `ENVIRONMENTS` lists the environments that ship. Any other is named by its import path.
"""

from agent_r1.environments.base import BaseEnv, EnvironmentOptions, EnvironmentParameters
from agent_r1.environments.registry import (
    ENVIRONMENTS,
    check_environment,
    environment_class,
    environment_options,
    make_environment,
)
from agent_r1.environments.resources import Resources
from agent_r1.environments.transition import finish, make, start, state_key, transition

__all__ = [
    "ENVIRONMENTS",
    "BaseEnv",
    "EnvironmentOptions",
    "EnvironmentParameters",
    "Resources",
    "check_environment",
    "environment_class",
    "environment_options",
    "finish",
    "make",
    "make_environment",
    "start",
    "state_key",
    "transition",
]

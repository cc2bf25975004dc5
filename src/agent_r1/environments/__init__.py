"""Environments: what an agent acts in. One file per benchmark.

1. A subclass of `BaseEnv` says what the agent sees first (`reset`), which tools it has (`@tool`
   methods) and what an action does (`step`; the default runs the tool calls).
2. `make`, `start`, `transition` and `finish` are the one place where environments are called: they
   await what is async, put what blocks into threads, bring every allowed return shape into a
   `Transition`, and turn whatever fails into a recorded infrastructure failure.
3. `ENVIRONMENTS` names those that ship; any other is named by its import path.
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

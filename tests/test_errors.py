"""Every exception class is a `UserError`, or is listed here as internal, with the reason."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import agent_r1
from agent_r1.errors import UserError
from agent_r1.extras import MissingExtraError

INTERNAL = {
    "agent_r1.chat.call_json.Malformed": "the parser catches it; the agent reads the message",
    "agent_r1.engines.base.EngineError": "a caller broke the engine's protocol",
    "agent_r1.engines.playback.ScriptError": "the caller says which parameter to change",
    "agent_r1.mdp.EnvironmentFailure": "becomes the end of a trajectory, which is data",
    "agent_r1.rewards.judge._Unavailable": "the judge tries again, then leaves it unscored",
    "agent_r1.rollout.collector.StaleWeightsError": "the engine was given other weights",
    "agent_r1.tools.arithmetic.ExpressionError": "the agent reads the message",
    "agent_r1.tools.failures.BadArguments": "the agent reads the message",
    "agent_r1.tools.failures.RemoteFailure": "becomes a tool result, which is data",
    "agent_r1.tools.program.ProgramError": "the agent reads the message",
    "agent_r1.tools.sandbox.result.SandboxError": "becomes an EnvironmentFailure",
    "agent_r1.tools.sandbox.result.TestsUnusable": "becomes an EnvironmentFailure",
    "agent_r1.tools.threads.TimeLimitExceeded": "becomes a tool result, which is data",
}


_SANDBOX = "agent_r1.tools.sandbox.inside"
"""Programs of the sandbox's own process: they import nothing of this package, and their errors end
there."""


def _exceptions() -> dict[str, type[BaseException]]:
    found = {}
    for module in pkgutil.walk_packages(agent_r1.__path__, "agent_r1."):
        if module.name.startswith(_SANDBOX):
            continue
        try:
            imported = importlib.import_module(module.name)
        except MissingExtraError:  # walked where the extra is installed, as in CI
            continue
        for _, kind in inspect.getmembers(imported, inspect.isclass):
            if issubclass(kind, BaseException) and kind.__module__.startswith("agent_r1."):
                found[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return found


def test_every_exception_is_for_the_user_or_internal_with_a_reason():
    unlisted = {
        name
        for name, kind in _exceptions().items()
        if not issubclass(kind, UserError) and name not in INTERNAL
    }
    assert not unlisted


def test_the_list_of_internal_errors_names_only_what_exists():
    assert INTERNAL.keys() <= {
        name for name, kind in _exceptions().items() if not issubclass(kind, UserError)
    }


def test_the_walk_finds_the_users_errors():
    assert "agent_r1.parameters.ParameterError" in _exceptions()
    assert "agent_r1.lineage.branches.ChangedParametersError" in _exceptions()

"""Call environments and check their results. No other module calls them.

1. Coroutines are awaited and blocking functions run in a worker thread, both with a time limit.
2. A turn that was cut never reaches the environment. Neither does a turn that could not be parsed,
   unless it holds code or the environment takes any text. The observation is then the error, and
   the episode continues.
3. Two-tuples and five-tuples become a `Transition`. A reward must be a finite number or None.
4. A call over the tool budget ends the trajectory truncated (``tool_budget``), unless
   ``budget.when_spent`` is ``tell``.
5. A failure (an exception, a timeout, a broken contract) ends the trajectory truncated, with the
   reason ``infrastructure`` and without a reward: it says nothing about the policy.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from agent_r1.environments.base import BaseEnv, Observation
from agent_r1.extras import MissingExtraError
from agent_r1.mdp import (
    Action,
    ActionType,
    EndReason,
    EnvironmentFailure,
    ToolStatus,
    Transition,
)
from agent_r1.parameters import ParameterError
from agent_r1.tools.failures import reason, short
from agent_r1.tools.threads import TimeLimitExceeded, call_within
from agent_r1.tools.unicode import valid_unicode

logger = logging.getLogger(__name__)

_logged: set[tuple[Any, ...]] = set()
"""Faults that are logged already: environment, exception, file and line."""

MAX_REWARD = 3.4e38
"""Rewards are stored as 32-bit floats; larger ones would become infinite."""


def make(function: Callable[[Mapping[str, Any]], BaseEnv], task: Mapping[str, Any]) -> BaseEnv:
    """A new episode of a task, made by ``function``.

    Raises:
        EnvironmentFailure: ``function`` failed.
        ParameterError: the configuration cannot work for any task, such as two tools with the same
            name.
        MissingExtraError: a package that the environment needs is not installed.
    """
    try:
        env = function(task)
        names = [spec.name for spec in env.tools]
    except (EnvironmentFailure, ParameterError, MissingExtraError):
        raise
    except Exception as error:
        logger.warning("the environment '%s' failed", task["environment"], exc_info=True)
        raise EnvironmentFailure(f"{task['environment']}: {reason(error)}") from None
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ParameterError(
            f"the environment '{task['environment']}' has two tools called '{twice}', and the "
            "agent cannot distinguish them. Rename one, or choose the tools of an MCP server in "
            "environment.options.mcp.<server>.tools"
        )
    return env


async def start(env: BaseEnv) -> Observation:
    """Reset the environment and return the first observation.

    Raises:
        EnvironmentFailure: the reset failed for any reason, so there is no episode.
    """
    observation = _observation(await _guarded(env, env.reset))
    if observation is None:
        raise EnvironmentFailure(f"{type(env).__name__}.reset() returned no observation")
    env.observation = observation
    return observation


async def transition(env: BaseEnv, action: Action) -> Transition:
    """Execute an action. Failures of the environment are returned, not raised.

    Raises:
        ValueError: the action's type is `ActionType.NONE`.
    """
    if action.type is ActionType.NONE:
        raise ValueError("an action of the type NONE cannot be executed")
    env.tool_results = []
    try:
        if not _reaches(env, action):
            result: Any = ({"error": action.error or "could not parse"}, 0.0)
        else:
            result = await _guarded(env, functools.partial(env.step, action))
        outcome = _within_budget(env, _normalised(env, action, result))
        if outcome.observation is not None:
            env.observation = outcome.observation
        if not env.done:
            outcome = replace(outcome, state_key=state_key(env))
    except EnvironmentFailure as failure:
        env.done = True
        return Transition(
            observation=None,
            reward=None,
            truncated=True,
            end_reason=EndReason.INFRASTRUCTURE,
            # After a timeout, calls that were being retried have no results. Their last failures
            # are all that distinguishes an outage from a slow environment.
            tool_results=(*env.tool_results, *env.unfinished_calls),
            info={"failure": short(str(failure))},
        )
    return outcome


def state_key(env: BaseEnv) -> str:
    """The environment's key of its state, checked.

    Raises:
        EnvironmentFailure: ``state_key()`` fails or does not return a string.
    """
    try:
        key = env.state_key()
    except Exception as error:
        _log_once(env, error)
        raise EnvironmentFailure(f"{type(env).__name__}: {reason(error)}") from None
    if not isinstance(key, str):
        raise EnvironmentFailure(f"a state key must be a string, not {type(key).__name__}")
    return valid_unicode(key)


async def finish(env: BaseEnv) -> None:
    """Close the environment. A failure is only logged, as the episode is over."""
    if type(env).close is BaseEnv.close:
        return
    try:
        await _guarded(env, env.close)
    except EnvironmentFailure as failure:
        logger.warning("%s did not close: %s", type(env).__name__, failure)


def _reaches(env: BaseEnv, action: Action) -> bool:
    """Whether the environment executes the action."""
    if action.type is ActionType.MALFORMED:
        return action.code is not None or env.takes_text
    return action.type is not ActionType.CUT


def _within_budget(env: BaseEnv, outcome: Transition) -> Transition:
    refused = any(result.status is ToolStatus.BUDGET for result in outcome.tool_results)
    if env.done or not refused or env.options.budget.when_spent == "tell":
        return outcome
    env.done = True
    return replace(outcome, truncated=True, end_reason=EndReason.TOOL_BUDGET)


async def _guarded(env: BaseEnv, function: Callable[[], Any]) -> Any:
    """The result of an environment's function. Raises EnvironmentFailure for every fault."""
    try:
        return await call_within(env.options.step_timeout_s, function)
    except EnvironmentFailure:
        raise
    except TimeLimitExceeded:
        limit = f"{env.options.step_timeout_s:g} s"
        raise EnvironmentFailure(f"{type(env).__name__} took longer than {limit}") from None
    except Exception as error:
        _log_once(env, error)
        raise EnvironmentFailure(f"{type(env).__name__}: {reason(error)}") from None


def _log_once(env: BaseEnv, error: BaseException) -> None:
    """Log a fault with its traceback, for the environment's author. The same fault in thousands of
    trajectories is logged once."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    fault = (type(env).__name__, type(error).__name__, place.filename, place.lineno)
    if fault not in _logged:
        _logged.add(fault)
        logger.warning("%s failed; logged once, recorded each time", fault[0], exc_info=True)


def _normalised(env: BaseEnv, action: Action, result: Any) -> Transition:
    if not isinstance(result, tuple) or len(result) not in (2, 5):
        raise EnvironmentFailure(
            f"{type(env).__name__}.step() must return (observation, reward) or (observation, "
            f"reward, terminated, truncated, info), not {type(result).__name__}"
            + (f" of {len(result)}" if isinstance(result, tuple) else "")
        )
    observation, reward = _observation(result[0]), _reward(result[1])
    info: Mapping[str, Any] = {}
    if len(result) == 5:
        terminated, truncated, info = bool(result[2]), bool(result[3]), result[4]
    else:
        terminated, truncated = action.type is ActionType.ANSWER, False
    terminated = terminated or (env.done and not truncated)
    truncated = truncated and not terminated
    env.done = terminated or truncated
    if not env.done and observation is None:
        raise EnvironmentFailure(
            f"{type(env).__name__}.step() returned no observation, but the episode continues"
        )
    answered = terminated and action.type is ActionType.ANSWER
    ended = EndReason.ANSWERED if answered else EndReason.ENVIRONMENT
    return Transition(
        observation=None if terminated else observation,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        end_reason=ended if env.done else None,
        tool_results=tuple(env.tool_results),
        info=_info(info),
    )


def _observation(value: Any) -> Observation | None:
    """The observation as a dict. None and an empty mapping become None; a string is wrapped."""
    if value is None or isinstance(value, Mapping):
        return dict(value) if value else None
    if isinstance(value, str):
        return {"observation": value}
    raise EnvironmentFailure(f"an observation must be a dict, not {type(value).__name__}")


def _reward(value: Any) -> float | None:
    if value is None:
        return None
    # float() accepts strings, including "nan".
    if isinstance(value, str | bytes):
        raise EnvironmentFailure(f"a reward must be a number or None, not {value!r}")
    try:
        reward = float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise EnvironmentFailure(f"a reward must be a number or None: {error}") from None
    if not math.isfinite(reward) or abs(reward) > MAX_REWARD:
        raise EnvironmentFailure(f"a reward must be finite, not {reward}")
    return reward


def _info(value: Any) -> dict[str, Any]:
    """``info`` converted to JSON types; numpy scalars become numbers."""
    try:
        text = json.dumps(value or {}, ensure_ascii=False, allow_nan=False, default=_plain)
        info = json.loads(valid_unicode(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise EnvironmentFailure(f"info must be JSON: {error}") from None
    if not isinstance(info, dict):
        raise EnvironmentFailure(f"info must be a dict, not {type(value).__name__}")
    return info


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")

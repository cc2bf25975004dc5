"""Runs the tool calls of one action and records what became of each.

1. All calls of an action run together; results stand in call order.
2. An unknown tool or bad arguments are the agent's mistake: told at once, never tried.
3. Anything else that fails — an exception, a timeout — is tried again, and the last attempt is
   final. The attempts are counted in the result.
4. Output over the limit is cut, and says so.

Sync functions run in worker threads (`agent_r1.tools.threads`), coroutines on the event loop.
Time that a tool took is in the result's ``latency_ms`` and nowhere in its text: what the agent
reads depends on nothing but what the tool did.
"""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from agent_r1.mdp import EnvironmentFailure, ToolCall, ToolResult, ToolStatus
from agent_r1.parameters import Parameters, nearest
from agent_r1.tools.failures import reason, short
from agent_r1.tools.spec import BadArguments, ToolSpec
from agent_r1.tools.threads import TimeLimitExceeded, call_within
from agent_r1.tools.unicode import valid_unicode

_RETRIED = (ToolStatus.ERROR, ToolStatus.TIMEOUT)


class ToolParameters(Parameters):
    """How tool calls are run; a tool may set its own limits (`agent_r1.tools.tool`)."""

    timeout_s: float = Field(10.0, gt=0)
    """Seconds per attempt."""
    attempts: int = Field(3, ge=1)
    """Tries of a failing call; the last failure is final."""
    max_result_chars: int = Field(4000, ge=1)
    """Characters of a result that the agent gets to read."""


class ToolRuntime:
    """Runs calls against a set of tools."""

    def __init__(self, specs: Sequence[ToolSpec], parameters: ToolParameters | None = None):
        """
        Raises:
            ValueError: two tools have the same name.
        """
        twice = [name for name, n in Counter(spec.name for spec in specs).items() if n > 1]
        if twice:
            raise ValueError(f"two tools are called '{twice[0]}'")
        self.specs = {spec.name: spec for spec in specs}
        self.parameters = parameters or ToolParameters()

    async def run(self, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """The outcome of each call, in call order; a failure is an outcome.

        Raises:
            EnvironmentFailure: a tool raised it: the environment failed, whatever the call was.
        """
        outcomes = await asyncio.gather(*(self._run(call) for call in calls))
        for outcome in outcomes:
            if isinstance(outcome, EnvironmentFailure):
                raise outcome
        return tuple(outcomes)

    async def _run(self, call: ToolCall) -> ToolResult | EnvironmentFailure:
        began = time.perf_counter()
        spec = self.specs.get(call.name)
        if spec is None:
            known = nearest(call.name, self.specs) if self.specs else " There are no tools."
            content = f"error: there is no tool '{short(call.name)}'.{known}"
            return ToolResult(call.name, ToolStatus.UNKNOWN_TOOL, content)
        try:
            arguments = spec.validate(call.arguments)
        except BadArguments as error:
            content = f"error: {spec.name}: {short(str(error))}"
            return ToolResult(call.name, ToolStatus.BAD_ARGUMENTS, content)
        attempts, status = 0, ToolStatus.ERROR
        while attempts < (spec.attempts or self.parameters.attempts) and status in _RETRIED:
            attempts += 1
            try:
                status, content = await self._attempt(spec, arguments)
            except EnvironmentFailure as failure:
                return failure
        latency_ms = (time.perf_counter() - began) * 1000
        return ToolResult(call.name, status, content, attempts, latency_ms)

    async def _attempt(self, spec: ToolSpec, arguments: dict[str, Any]) -> tuple[ToolStatus, str]:
        timeout_s = spec.timeout_s or self.parameters.timeout_s
        try:
            value = await call_within(timeout_s, functools.partial(spec.function, **arguments))
            text = _text(value)
        except TimeLimitExceeded:
            content = f"error: {spec.name} did not answer within {timeout_s:g} s"
            return ToolStatus.TIMEOUT, content
        except EnvironmentFailure:
            raise
        except (Exception, SystemExit) as error:
            return ToolStatus.ERROR, f"error: {spec.name}: {reason(error)}"
        kept = self.parameters.max_result_chars
        if len(text) > kept:
            note = f"\n[cut: {kept} of {len(text)} characters]"
            return ToolStatus.OVERSIZED, text[:kept] + note
        return ToolStatus.OK, text


def _text(value: Any) -> str:
    """A tool's return value as the agent reads it."""
    if value is None:
        return "done"
    if isinstance(value, str):
        return valid_unicode(value)
    return valid_unicode(json.dumps(value, ensure_ascii=False, default=str))

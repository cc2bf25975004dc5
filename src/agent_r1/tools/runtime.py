"""Runs the tool calls of one action and records the outcome of each.

1. Calls over the trajectory's budget (``budget``) and calls of a tool that is down for everyone
   (``unavailable``) are refused in call order, before anything runs.
2. All other calls of an action run together, each tool at most ``concurrency`` times over all
   trajectories. Results are in call order.
3. An unknown tool or bad arguments are the agent's mistake: the agent gets the error at once, and
   the call is not retried.
4. Anything else that fails (an exception, a timeout) is retried after a pause. The last attempt is
   final, and the result counts the attempts.
5. Output over the limit is cut, and says so.

Sync functions run in worker threads (`agent_r1.tools.threads`), coroutines on the event loop,
isolated tools in worker processes (`agent_r1.tools.processes`). The time that a tool took is in the
result's ``latency_ms`` but not in its text: what the agent reads depends only on what the tool did.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import time
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from agent_r1.mdp import EnvironmentFailure, ToolCall, ToolResult, ToolStatus
from agent_r1.parameters import nearest
from agent_r1.tools.budget import ToolBudget
from agent_r1.tools.failures import BadArguments, reason, short
from agent_r1.tools.output import ToolOutput, output
from agent_r1.tools.parameters import ToolParameters
from agent_r1.tools.processes import PROCESSES
from agent_r1.tools.slots import slot
from agent_r1.tools.spec import ToolSpec
from agent_r1.tools.threads import TimeLimitExceeded, call_within

FAILED = frozenset({ToolStatus.ERROR, ToolStatus.TIMEOUT})
"""Statuses that are retried and may be a sign of an outage: not the agent's mistake."""


class ToolRuntime:
    """Runs the calls of one trajectory against a set of tools."""

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
        self.budget = ToolBudget(self.parameters.budget)
        self._failing: dict[object, ToolResult] = {}

    @property
    def unfinished(self) -> tuple[ToolResult, ...]:
        """The latest failure of each call that is being retried: its result if time is over now."""
        return tuple(self._failing.values())

    async def run(
        self, calls: Sequence[ToolCall], unavailable: Collection[str] = ()
    ) -> tuple[ToolResult, ...]:
        """The outcome of each call, in call order; a failure is an outcome.

        Args:
            calls: the calls of one action.
            unavailable: names of tools that are down, and are not called.

        Raises:
            EnvironmentFailure: a tool raised it.
        """
        admitted = self.budget.admit(len(calls))
        outcomes = await asyncio.gather(
            *(self._run(call, unavailable) for call in calls[:admitted])
        )
        results: list[ToolResult] = []
        for outcome in outcomes:
            if isinstance(outcome, EnvironmentFailure):
                raise outcome
            results.append(outcome)
        return (*results, *(self._over_budget(call) for call in calls[admitted:]))

    def _over_budget(self, call: ToolCall) -> ToolResult:
        spent = self.budget.exhausted
        content = f"error: the tool budget is used up ({spent}): answer without further calls"
        return ToolResult(call.name, ToolStatus.BUDGET, content, attempts=0)

    async def _run(
        self, call: ToolCall, unavailable: Collection[str]
    ) -> ToolResult | EnvironmentFailure:
        began = time.perf_counter()
        spec = self.specs.get(call.name)
        if spec is None:
            known = nearest(call.name, self.specs) if self.specs else " There are no tools."
            content = f"error: there is no tool '{short(call.name)}'.{known}"
            return ToolResult(call.name, ToolStatus.UNKNOWN_TOOL, content)
        try:
            arguments = spec.validate(call.arguments)
        except BadArguments as error:
            return ToolResult(call.name, *_bad_arguments(spec, error))
        if spec.name in unavailable:
            content = f"error: {spec.name} is unavailable"
            return ToolResult(call.name, ToolStatus.UNAVAILABLE, content, attempts=0)
        try:
            status, content, attempts = await self._attempts(spec, call, arguments)
        except EnvironmentFailure as failure:
            return failure
        latency_ms = (time.perf_counter() - began) * 1000
        return ToolResult(call.name, status, content, attempts, latency_ms)

    async def _attempts(
        self, spec: ToolSpec, call: ToolCall, arguments: dict[str, Any]
    ) -> tuple[ToolStatus, str, int]:
        """Status and content of the last attempt, and its number."""
        parameters = self.parameters
        last = spec.attempts or parameters.attempts
        this = object()
        try:
            for attempt in range(1, last + 1):
                async with slot(spec.function, spec.concurrency or parameters.concurrency):
                    began = time.perf_counter()
                    status, content = await self._attempt(spec, call, arguments)
                    self.budget.seconds += time.perf_counter() - began
                if status not in FAILED or attempt == last:
                    break
                self._failing[this] = ToolResult(call.name, status, content, attempt)
                if pause := parameters.backoff(attempt):
                    await asyncio.sleep(pause)
            return status, content, attempt
        finally:
            self._failing.pop(this, None)

    async def _attempt(
        self, spec: ToolSpec, call: ToolCall, arguments: dict[str, Any]
    ) -> tuple[ToolStatus, str]:
        timeout_s = spec.timeout_s or self.parameters.timeout_s
        try:
            text, length = await self._call(spec, call, arguments, timeout_s)
        except TimeLimitExceeded:
            content = f"error: {spec.name} did not answer within {timeout_s:g} s"
            return ToolStatus.TIMEOUT, content
        except EnvironmentFailure:
            raise
        except BadArguments as error:
            return _bad_arguments(spec, error)
        except Exception as error:
            return ToolStatus.ERROR, f"error: {spec.name}: {reason(error)}"
        if length > len(text):
            return ToolStatus.OVERSIZED, f"{text}\n[cut: {len(text)} of {length} characters]"
        return ToolStatus.OK, text

    async def _call(
        self, spec: ToolSpec, call: ToolCall, arguments: dict[str, Any], timeout_s: float
    ) -> ToolOutput:
        kept = self.parameters.max_result_chars
        if spec.isolated:
            return await PROCESSES.run(spec.function, call.arguments, timeout_s, kept)
        # A copy: an attempt that changes its arguments must not change those of the next.
        own = copy.deepcopy(arguments)
        value = await call_within(timeout_s, functools.partial(spec.function, **own))
        return output(value, kept)


def _bad_arguments(spec: ToolSpec, error: BadArguments) -> tuple[ToolStatus, str]:
    return ToolStatus.BAD_ARGUMENTS, f"error: {spec.name}: {short(str(error))}"

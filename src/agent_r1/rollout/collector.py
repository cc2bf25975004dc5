"""Collect trajectories: each is a task on one event loop, and the engine serves them together.

1. Trajectories start in cohorts. The environments reset, and a prompt that several members of a
   group share is computed once and forked.
2. Then each trajectory repeats: sample an action, parse it, execute it, append the observation, and
   move the window if the context is full.
3. In deterministic mode, a cohort has ``concurrency`` trajectories, and all of them wait for each
   other before every generation. Otherwise a cohort is a group, and the next group starts as soon
   as there is room.
4. If a tool is down for all trajectories (`Outages`), those that met the outage end, not scored.

A fault of an environment or a tool is recorded in the tables. A fault of the engine or of this
program ends the collection: all tasks are cancelled, and the first error is raised unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import pandas as pd

from agent_r1.chat import ChatFormat, observation_text
from agent_r1.engines.base import Engine, Sampling
from agent_r1.environments import BaseEnv, finish, make, start, state_key, transition
from agent_r1.mdp import Action, EnvironmentFailure
from agent_r1.rollout.cohorts import by_group, same_prompts
from agent_r1.rollout.event_loop import all_of, run_until_done
from agent_r1.rollout.outages import Outages
from agent_r1.rollout.parameters import RolloutParameters
from agent_r1.rollout.requests import TrajectoryRequest
from agent_r1.rollout.table import build_tables
from agent_r1.rollout.trajectory import Phase, Trajectory
from agent_r1.rollout.turnstile import Room, Turnstile

Tables = tuple[pd.DataFrame, pd.DataFrame]
"""``rollouts`` and ``rollout_timings``."""

MakeEnvironment = Callable[[Mapping[str, Any]], BaseEnv]
"""A row of the tasks table → a new episode of this task."""


class OnProgress(Protocol):
    """A callback that reports the progress of a collection."""

    def __call__(self, done: int, total: int, tokens: int) -> None:
        """Number of ended trajectories, of all trajectories, and of tokens sampled so far."""
        ...


class StaleWeightsError(RuntimeError):
    """The engine does not hold the weights that the rollouts should come from."""


def collect(
    engine: Engine,
    chat: ChatFormat,
    make_environment: MakeEnvironment,
    requests: Sequence[TrajectoryRequest],
    parameters: RolloutParameters,
    on_progress: OnProgress | None = None,
) -> Tables:
    """Run all trajectories to their ends with the engine's weights. This also works inside a
    running event loop, such as a notebook's.

    Args:
        engine: an engine with the policy's weights; its ``weight_version`` becomes
            ``policy_version``.
        chat: formats and parses turns.
        make_environment: makes a new episode of a task; may raise `EnvironmentFailure`.
        requests: the trajectories to run; their ids must be distinct.
        parameters: limits, sampling, order.
        on_progress: called after every action, on the event loop.

    Returns:
        The tables ``rollouts`` and ``rollout_timings``, sorted by (trajectory_id, step_index).

    Raises:
        ValueError: two requests have the same trajectory id.
        StaleWeightsError: the engine's weights changed during the collection.
    """
    names = [request.trajectory_id for request in requests]
    if len(set(names)) < len(names):
        twice = next(name for name in sorted(names) if names.count(name) > 1)
        raise ValueError(f"trajectory id '{twice}' is requested more than once")
    collection = _Collection(engine, chat, make_environment, parameters, on_progress, len(requests))
    return run_until_done(collection.run(requests))


class _Collection:
    def __init__(
        self,
        engine: Engine,
        chat: ChatFormat,
        make_environment: MakeEnvironment,
        parameters: RolloutParameters,
        on_progress: OnProgress | None,
        total: int,
    ) -> None:
        self._engine = engine
        self._chat = chat
        self._make_environment = make_environment
        self._parameters = parameters
        self._version = engine.weight_version
        self._on_progress = on_progress
        self._outages = Outages()
        self._total = total
        self._done = 0
        self._tokens = 0

    async def run(self, requests: Sequence[TrajectoryRequest]) -> Tables:
        trajectories = [
            Trajectory(request, self._parameters, self._version)
            for request in sorted(requests, key=lambda request: request.trajectory_id)
        ]
        size = self._parameters.concurrency
        if self._parameters.deterministic:
            for first in range(0, len(trajectories), size):
                await self._play_cohort(trajectories[first : first + size])
        else:
            room = Room(size)
            await all_of(
                self._play_when_free(group, room) for group in by_group(trajectories, size)
            )
        self._outages.conclude()
        for trajectory in trajectories:
            self._end_if_affected(trajectory)
        # Here, not after the loop has ended: building tables can trigger garbage collection, and a
        # coroutine that ignores its cancellation may spin if it is collected without a loop.
        return build_tables(trajectories)

    async def _play_when_free(self, group: Sequence[Trajectory], room: Room) -> None:
        await room.enter(len(group))
        await self._play_cohort(group, room)

    async def _play_cohort(self, cohort: Sequence[Trajectory], room: Room | None = None) -> None:
        environments = await all_of(self._start(trajectory) for trajectory in cohort)
        live = [
            (trajectory, environment)
            for trajectory, environment in zip(cohort, environments, strict=True)
            if environment is not None and trajectory.phase is Phase.ACTION
        ]
        await all_of(
            self._share_prompt(members)
            for members in same_prompts([trajectory for trajectory, _ in live])
        )
        if room is not None:
            room.leave(len(cohort) - len(live))
        turnstile = Turnstile(len(live)) if self._parameters.deterministic else None
        self._report(ended=len(cohort) - len(live))
        await all_of(self._play(*pair, turnstile, room) for pair in live)

    async def _start(self, trajectory: Trajectory) -> BaseEnv | None:
        environment = None
        try:
            environment = make(self._make_environment, trajectory.request.task)
            observation = await start(environment)
            key = state_key(environment)
        except EnvironmentFailure as failure:
            trajectory.fail(str(failure))
            if environment is not None:  # it may have acquired resources before it failed
                await finish(environment)
            return None
        prompt = self._chat.prompt_ids(observation, environment.tools)
        trajectory.begin(prompt, key)
        if trajectory.phase is Phase.ENDED:
            await finish(environment)
        return environment

    async def _share_prompt(self, members: Sequence[Trajectory]) -> None:
        """Compute the members' prompt once. For a single member, its first generation does it."""
        if len(members) < 2:
            return
        shared = f"{members[0].id}#prompt"
        sampling = Sampling(max_tokens=0, stop_token_ids=(), seed=0)
        try:
            await self._engine.generate(shared, members[0].pending, sampling)
            self._engine.fork(shared, [member.id for member in members])
        finally:
            self._engine.close(shared)
        for member in members:
            member.pending = []

    async def _play(
        self,
        trajectory: Trajectory,
        environment: BaseEnv,
        turnstile: Turnstile | None,
        room: Room | None,
    ) -> None:
        try:
            while trajectory.phase is not Phase.ENDED:
                if turnstile is not None:
                    await turnstile.arrive(trajectory.id)
                self._outages.settle()
                if self._end_if_affected(trajectory):
                    self._report(ended=1)
                    break
                action = await self._sample(trajectory, environment)
                if trajectory.phase is Phase.ENVIRONMENT:
                    await self._execute(trajectory, environment, action)
                self._report(
                    ended=int(trajectory.phase is Phase.ENDED),
                    tokens=trajectory.rows[-1]["completion_tokens"],
                )
        finally:
            self._engine.close(trajectory.id)
            await finish(environment)
            if turnstile is not None:
                turnstile.leave()
            if room is not None:
                room.leave(1)

    async def _sample(self, trajectory: Trajectory, environment: BaseEnv) -> Action:
        if self._engine.weight_version != self._version:
            raise StaleWeightsError(
                f"the engine loaded '{self._engine.weight_version}' while trajectories of policy "
                f"'{self._version}' were running"
            )
        started_at = datetime.now(UTC)
        if trajectory.pending_window is not None:
            self._engine.window(trajectory.id, *trajectory.pending_window)
        generation = await self._engine.generate(
            trajectory.id, trajectory.pending, trajectory.sampling(self._chat.stop_token_ids)
        )
        action = self._chat.parse(generation.token_ids, generation.finish_reason, environment.tools)
        trajectory.act(generation, action, started_at)
        return action

    async def _execute(self, trajectory: Trajectory, environment: BaseEnv, action: Action) -> None:
        name = trajectory.request.task["environment"]
        environment.unavailable_tools = self._outages.unavailable(name)
        began = time.perf_counter()
        outcome = await transition(environment, action)
        tool_ms = (time.perf_counter() - began) * 1e3
        self._outages.note(
            *(trajectory.id, len(trajectory.rows) - 1, name, outcome.tool_results),
            environment.options.unavailable_after,
        )
        observation = outcome.observation
        sampled = trajectory.rows[-1]["action_token_ids"]
        appended = []
        if observation is not None:
            appended = self._chat.observation_ids(observation, sampled)
        if outcome.tool_results:
            environment.tool_budget.tokens += len(appended)
        trajectory.observe(
            outcome,
            observation=None if observation is None else observation_text(observation),
            appended_ids=appended,
            state_key=outcome.state_key,
            tool_ms=tool_ms,
            forgotten=self._chat.forgotten(sampled),
        )

    def _end_if_affected(self, trajectory: Trajectory) -> bool:
        """End the trajectory if it met an outage. Returns whether it did."""
        met = self._outages.met_by(trajectory.id)
        if met is not None:
            trajectory.fail_since(met.step, met.info)
        return met is not None

    def _report(self, ended: int, tokens: int = 0) -> None:
        self._done += ended
        self._tokens += tokens
        if self._on_progress is not None:
            self._on_progress(self._done, self._total, self._tokens)

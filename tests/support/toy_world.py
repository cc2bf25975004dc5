"""A world without text: a chat format on bare numbers, and an environment that echoes.

An action's first token says what it is: its remainder by 4 is 0 for a malformed turn, 1 for an
answer, 2 for one call and 3 for two parallel calls of ``echo``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from agent_r1.chat import observation_text
from agent_r1.engines.base import Generation, Sampling
from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.environments import BaseEnv
from agent_r1.mdp import Action, ActionType, EnvironmentFailure, ToolCall, visible_context
from agent_r1.rollout import RolloutParameters, TrajectoryRequest, collect
from agent_r1.tools import tool

STOPS = tuple(range(3, 9))
VOCABULARY = 64
HEADER = 10
"""Ends each context, as a template's assistant header does."""
CALL, ANSWER, MALFORMED = [14], [13], [12]
"""Actions for scripts."""


def encode(text: str) -> list[int]:
    return [12 + byte % 50 for byte in text.encode()]


class ToyChat:
    """See `agent_r1.chat.ChatFormat`."""

    stop_token_ids = STOPS

    def prompt_ids(self, observation: Mapping[str, Any] | str, tools: Sequence) -> list[int]:
        return [*encode(observation_text(observation)), HEADER]

    def observation_ids(self, observation: Any, action_token_ids: Sequence[int]) -> list[int]:
        stopped = bool(action_token_ids) and action_token_ids[-1] in STOPS
        glue = [] if stopped else [STOPS[0]]
        return [*glue, 9, *encode(observation_text(observation))[:12], HEADER]

    def parse(self, token_ids: Sequence[int], finish_reason: str, tools: Sequence = ()) -> Action:
        text = " ".join(map(str, token_ids))
        if finish_reason == "length":
            return Action(ActionType.CUT, text, error="cut")
        kind = token_ids[0] % 4
        if kind == 0:
            return Action(ActionType.MALFORMED, text, error="could not parse: 0 is no call")
        if kind == 1:
            return Action(ActionType.ANSWER, text, answer=str(token_ids[0]))
        calls = [ToolCall("echo", {"word": f"w{token_ids[0]}-{i}"}) for i in range(kind - 1)]
        return Action(ActionType.TOOL_CALL, text, tool_calls=tuple(calls))

    def forgotten(self, action_token_ids: Sequence[int]) -> list[tuple[int, int]]:
        return []


class ToyEnv(BaseEnv):
    """Echoes; says how long it takes by ``delay``, which a test may change."""

    jitter: random.Random | None = None
    """Makes tools take a varying number of turns of the event loop."""

    def reset(self):
        if self.task["prompt"] == "broken":
            raise EnvironmentFailure("the simulator is down")
        return {"question": self.task["prompt"]}

    async def step(self, action):
        observation, _ = await super().step(action)
        return observation, 1.0 if action.type is ActionType.ANSWER else 0.0

    @tool
    async def echo(self, word: str) -> str:
        """Say it again.

        Args:
            word: what to say.
        """
        if ToyEnv.jitter is not None:
            for _ in range(ToyEnv.jitter.randrange(40)):
                await asyncio.sleep(0)
        return f"{word}!"


class FakeEngine:
    """An engine without a model: tokens are a function of the stream and the seed.

    It also notes what an engine can note: sessions open at a time, who asked together, and what
    each session saw before each of its actions.
    """

    def __init__(self, lengths: tuple[int, int] = (1, 9)) -> None:
        self.weight_version = "fake"
        self.lengths = lengths
        self.sessions: dict[str, list[int]] = {}
        self.windows: dict[str, tuple[int, int, Any]] = {}
        self.seen: dict[str, list[list[int]]] = {}
        self.most = 0
        self.prompts_computed = 0
        self.batches: list[list[str]] = []
        self._batch: list[str] | None = None

    def load(self, policy: Any, version: str) -> None:
        self.weight_version = version
        self.sessions.clear()

    async def generate(self, session: str, new: Sequence[int], how: Sampling) -> Generation:
        stream = self.sessions.setdefault(session, [])
        stream.extend(new)
        if not how.max_tokens:
            self.prompts_computed += 1
            return Generation([], [], "length", len(stream), 0, 0.0)
        self.most = max(self.most, len(self.sessions))
        if self._batch is None:
            self._batch = []
            self.batches.append(self._batch)
            asyncio.get_running_loop().call_soon(self._close_batch)
        self._batch.append(session)
        await asyncio.sleep(0)
        visible = visible_context(stream, *self.windows.get(session, (0, 0)))
        self.seen.setdefault(session, []).append(visible)
        draw = random.Random(f"{visible} {how.seed}")
        wanted = draw.randint(*self.lengths)
        body = [draw.randrange(12, VOCABULARY) for _ in range(wanted - 1)]
        action = [*body, draw.choice(STOPS)][: how.max_tokens]
        stream.extend(action)
        reason = "stop" if action[-1] in STOPS else "length"
        return Generation(action, [-0.5] * len(action), reason, len(visible), 0, 1.0)

    def _close_batch(self) -> None:
        self._batch = None

    def fork(self, session: str, into: Sequence[str]) -> None:
        for name in into:
            self.sessions[name] = list(self.sessions[session])

    def window(self, session: str, prefix: int, start: int, drops: Any = None) -> None:
        assert session in self.sessions
        self.windows[session] = (prefix, start, drops)

    def close(self, session: str) -> None:
        self.sessions.pop(session, None)
        self.windows.pop(session, None)


def task(number: int = 0, prompt: str | None = None, environment: str = "toy") -> dict[str, Any]:
    return {
        "task_id": f"task{number:02d}",
        "environment": environment,
        "split": "train",
        "family": "toy",
        "prompt": prompt or f"question number {number}",
        "answers": ["42"],
        "hops": None,
        "payload": "{}",
    }


def tasks_table(count: int) -> pd.DataFrame:
    return pd.DataFrame([task(number) for number in range(count)])


def requests(count: int = 4, samples: int = 3, **others: Any) -> list[TrajectoryRequest]:
    return [
        TrajectoryRequest(
            f"iter_00001/task{number:02d}/{sample}",
            task(number, **others),
            f"iter_00001/task{number:02d}",
            sample,
            1.0,
            1000 * number + sample,
        )
        for number in range(count)
        for sample in range(samples)
    ]


def parameters(**others: Any) -> RolloutParameters:
    return RolloutParameters(**({"max_tokens_per_step": 12, "max_context_tokens": 200} | others))


def run(engine: Any = None, wanted=None, make=ToyEnv, on_progress=None, **limits):
    """The rollouts and timings of `requests`, or of those that are wanted."""
    return collect(
        engine or FakeEngine(),
        ToyChat(),
        make,
        requests() if wanted is None else wanted,
        parameters(**limits),
        on_progress,
    )


def scripted(*actions: list[int], make=ToyEnv, prompt: str = "hi", **limits):
    """The rollouts and timings of one trajectory whose actions are given, without stop tokens."""
    wanted = requests(1, 1, prompt=prompt)
    engine = ScriptedEngine({wanted[0].trajectory_id: [[*one, STOPS[0]] for one in actions]})
    return run(engine, wanted, make, **limits)

"""A trajectory as a state machine that knows tokens and limits, but neither models nor text.

    CONTEXT --begin--> ACTION --act--> ENVIRONMENT --observe--> ACTION …
       |                  |                |
       +---- fail --------+-- a limit -----+-- the end --> ENDED

1. `begin` appends the prompt. A prompt that leaves no room for an action ends the trajectory with
   one row without an action (`prompt_too_long`). So does an environment that fails to reset
   (`infrastructure`, not scored).
2. `act` appends a sampled action and opens a row. A cut action ends the trajectory: with
   `token_budget` if it used all tokens of a step, with `context_overflow` if the context is full.
3. `observe` completes the row with the environment's response and appends the observation to the
   stream. A trajectory that may not act again ends truncated (`max_steps`, `context_overflow`).
   Its last observation is kept as ``final_token_ids``, as far as the window allows.
4. The stream only grows by appended ids. So each context starts with the previous context and the
   sampled action, token for token, except for tokens that the window dropped in between
   (`agent_r1.rollout.window`).
5. `fail_since` ends a trajectory, even one that has ended, at a step at which the infrastructure
   failed, if this is found out later (`infrastructure`, not scored).

Every trajectory ends exactly once, on its last row, either terminated or truncated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from agent_r1.engines.base import Generation, Sampling
from agent_r1.mdp import Action, ActionType, EndReason, Transition
from agent_r1.rollout.parameters import RolloutParameters
from agent_r1.rollout.requests import TrajectoryRequest
from agent_r1.rollout.window import Window
from agent_r1.seeding import derive_seed


class Phase(StrEnum):
    """What a trajectory is waiting for."""

    CONTEXT = "context"
    ACTION = "action"
    ENVIRONMENT = "environment"
    ENDED = "ended"


class Trajectory:
    """The tokens and the rows of one attempt."""

    def __init__(
        self, request: TrajectoryRequest, parameters: RolloutParameters, policy_version: str
    ) -> None:
        self.request = request
        self.phase = Phase.CONTEXT
        self.stream: list[int] = []
        """All tokens so far."""
        self.pending: list[int] = []
        """The end of the stream that was not yet sent to the engine."""
        self.pending_window: tuple[int, int, list[int] | None] | None = None
        """(prefix, start, drops) of a window that was not yet sent to the engine."""
        self.rows: list[dict[str, Any]] = []
        """Rows of the table ``rollouts``. The last row is incomplete while the environment acts."""
        self.timings: list[dict[str, Any]] = []
        """Rows of the table ``rollout_timings``."""
        self._parameters = parameters
        self._version = policy_version
        self._context: list[int] = []
        self._window = Window(parameters)
        self._state_key = ""

    @property
    def id(self) -> str:
        """The trajectory's id."""
        return self.request.trajectory_id

    # --- context -----------------------------------------------------------------------------

    def begin(self, prompt_ids: Sequence[int], state_key: str) -> None:
        """Append the prompt. ``state_key`` is the key of the first state."""
        self._require(Phase.CONTEXT)
        self._state_key = state_key
        if not self._window.open(len(prompt_ids)):
            limit = self._parameters.max_context_tokens
            info = {"prompt_tokens": len(prompt_ids), "max_context_tokens": limit}
            self._end_without_action(EndReason.PROMPT_TOO_LONG, 0.0, info)
            return
        self._append(prompt_ids)
        self.phase = Phase.ACTION

    def fail(self, failure: str) -> None:
        """End the trajectory: the environment could not start. ``failure`` is the reason."""
        self._require(Phase.CONTEXT)
        self._end_without_action(EndReason.INFRASTRUCTURE, None, {"failure": failure})

    def _append(self, token_ids: Sequence[int]) -> None:
        self.stream.extend(token_ids)
        self.pending.extend(token_ids)
        self._context.extend(token_ids)

    def _end_without_action(
        self, reason: EndReason, reward: float | None, info: Mapping[str, Any]
    ) -> None:
        """Write one row with the reason, so that the trajectory is in the table."""
        self._open_row(_NO_GENERATION, Action(ActionType.NONE, ""), datetime.now(UTC))
        self.rows[-1] |= {"finish_reason": None, "env_reward": reward, "info": _json(info)}
        self._end(reason, terminated=False)

    # --- action ------------------------------------------------------------------------------

    def sampling(self, stop_token_ids: Sequence[int]) -> Sampling:
        """Sampling parameters of the next action. Step and context limit its tokens."""
        self._require(Phase.ACTION)
        parameters = self._parameters
        return Sampling(
            max_tokens=self._window.budget(len(self.stream)),
            stop_token_ids=tuple(stop_token_ids),
            seed=self._seed(),
            temperature=self.request.temperature,
            top_p=parameters.top_p,
            top_k=parameters.top_k,
            min_p=parameters.min_p,
        )

    def _seed(self) -> int:
        return derive_seed(self.request.seed, len(self.rows))

    def act(self, generation: Generation, action: Action, started_at: datetime) -> None:
        """Append the sampled action; ``action`` is the parsed one.

        Raises:
            RuntimeError: the engine saw another number of tokens than the table records.
        """
        self._require(Phase.ACTION)
        self._open_row(generation, action, started_at)
        if generation.prompt_tokens != self.rows[-1]["prompt_tokens"]:
            raise RuntimeError(
                f"trajectory '{self.id}', step {len(self.rows) - 1}: the engine saw "
                f"{generation.prompt_tokens} tokens instead of {self.rows[-1]['prompt_tokens']}"
            )
        self._window.begin_step(len(self.stream))
        self.stream.extend(generation.token_ids)
        self.pending, self.pending_window = [], None
        self.phase = Phase.ENVIRONMENT
        if action.type is ActionType.CUT:
            budget = len(generation.token_ids) >= self._parameters.max_tokens_per_step
            self._end(EndReason.TOKEN_BUDGET if budget else EndReason.CONTEXT_OVERFLOW)

    def _open_row(self, generation: Generation, action: Action, started_at: datetime) -> None:
        key = {"trajectory_id": self.id, "step_index": len(self.rows)}
        calls = [{"name": call.name, "arguments": call.arguments} for call in action.tool_calls]
        request = self.request
        row = key | {
            "task_id": request.task["task_id"],
            "group_id": request.group_id,
            "sample_index": request.sample_index,
            "environment": request.task["environment"],
            "policy_version": self._version,
            "state_key": self._state_key,
            "context_token_ids": self._context,
            "context_prefix": self._window.prefix,
            "context_start": self._window.start,
            "context_drops": list(self._window.drops) or None,
            "action_token_ids": generation.token_ids,
            "action_logprobs": generation.logprobs,
            "temperature": request.temperature,
            "action_text": action.text,
            "action_type": str(action.type),
            "tool_calls": _json(calls),
            "tool_results": "[]",
            "observation": None,
            "env_reward": 0.0,
            "terminated": False,
            "truncated": False,
            "end_reason": None,
            "final_token_ids": None,
            "finish_reason": generation.finish_reason,
            "prompt_tokens": self._window.shown(len(self.stream)),
            "completion_tokens": len(generation.token_ids),
            "media": None,
            "seed": self._seed(),
            "info": "{}",
        }
        timing = key | {
            "generation_ms": generation.generation_ms,
            "tool_ms": 0.0,
            "tool_latencies_ms": [],
            "cached_tokens": generation.cached_tokens,
            "started_at": started_at,
        }
        self.rows.append(row)
        self.timings.append(timing)
        self._context = []

    # --- environment -------------------------------------------------------------------------

    def observe(
        self,
        transition: Transition,
        observation: str | None,
        appended_ids: Sequence[int],
        state_key: str,
        tool_ms: float = 0.0,
        forgotten: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Complete the row with the environment's response.

        Args:
            transition: of the last action.
            observation: the observation as text; None if the episode terminated.
            appended_ids: tokens of the observation and of the template around it; empty if there is
                no observation.
            state_key: key of the state after the action.
            tool_ms: wall-clock milliseconds in the environment.
            forgotten: spans ``[begin, end)`` of the action that later actions do not see.
        """
        self._require(Phase.ENVIRONMENT)
        self._record(transition, observation, tool_ms)
        self._state_key = state_key
        length = len(self.stream)
        final = self._window.whole_or_cut(length, appended_ids)
        if transition.terminated:
            self._end(transition.end_reason or EndReason.ENVIRONMENT, terminated=True)
        elif transition.truncated:
            self._end(transition.end_reason or EndReason.ENVIRONMENT, final=final)
        elif len(self.rows) >= self._parameters.max_steps:
            self._end(EndReason.MAX_STEPS, final=final)
        elif not self._show(length, len(appended_ids), forgotten):
            self._end(EndReason.CONTEXT_OVERFLOW, final=final)
        else:
            self._append(appended_ids)
            self.phase = Phase.ACTION

    def _record(self, transition: Transition, observation: str | None, tool_ms: float) -> None:
        results = transition.tool_results
        self.rows[-1] |= {
            "tool_results": _json(
                [
                    {
                        "name": result.name,
                        "status": str(result.status),
                        "attempts": result.attempts,
                        "content": result.content,
                    }
                    for result in results
                ]
            ),
            "observation": observation,
            "env_reward": transition.reward,
            "info": _json(transition.info),
        }
        self.timings[-1] |= {
            "tool_ms": tool_ms,
            "tool_latencies_ms": [result.latency_ms for result in results],
        }

    def fail_since(self, step: int, failure: Mapping[str, Any]) -> None:
        """End at a step at which the infrastructure failed. Later steps are deleted, because their
        observations do not come from the environment. ``failure`` becomes the row's ``info``."""
        del self.rows[step + 1 :], self.timings[step + 1 :]
        self.rows[-1] |= {"observation": None, "env_reward": None, "info": _json(failure)}
        self._end(EndReason.INFRASTRUCTURE)

    def _show(self, length: int, appended: int, forgotten: Sequence[tuple[int, int]]) -> bool:
        """Whether another action fits. A changed window is kept in `pending_window`."""
        window, before = self._window, self._window.start
        window.drop(forgotten)
        fits = window.admit(length, appended)
        if forgotten or window.start != before:
            self.pending_window = (window.prefix, window.start, list(window.drops) or None)
        return fits

    def _end(
        self, reason: EndReason, *, terminated: bool = False, final: Sequence[int] = ()
    ) -> None:
        self.rows[-1] |= {
            "terminated": terminated,
            "truncated": not terminated,
            "end_reason": str(reason),
            "final_token_ids": None if terminated else list(final),
        }
        self.phase = Phase.ENDED

    def _require(self, phase: Phase) -> None:
        if self.phase is not phase:
            raise RuntimeError(f"trajectory '{self.id}' is in phase {self.phase}, not {phase}")


_NO_GENERATION = Generation([], [], "stop", 0, 0, 0.0)


def _json(value: Any) -> str:
    """Strict JSON, with characters outside ASCII unescaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)

"""What engines without a model share: each session goes on with actions that are known beforehand.

They let actions that nobody samples go through the very loop that policies go through, so their
episodes have the same rows, the same tokens and the same environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from agent_r1.engines.base import Generation, Sampling
from agent_r1.mdp import visible_context

KnownAction = tuple[Sequence[int], Sequence[float], Literal["stop", "length"]]
"""Token ids, the log-prob of each, finish reason."""


class ScriptError(RuntimeError):
    """What is asked for is not in what the engine plays."""


class PlaybackEngine:
    """See `agent_r1.engines.base.Engine`. Subclasses define `_action`."""

    def __init__(self, version: str):
        """``version`` is, or stands for, the sha256 of the policy that acts."""
        self.weight_version = version
        self._positions: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        """Tokens of each session's stream."""
        self._hidden: dict[str, int] = {}
        """Of those, how many its window hides."""

    def _action(self, session: str, position: int, sampling: Sampling) -> KnownAction:
        """The action that a session takes at ``position``, counted from 0."""
        raise NotImplementedError(f"{type(self).__name__} must define _action()")

    def load(self, policy: Path, version: str) -> None:
        """Nothing to load.

        Raises:
            ScriptError: another version than the engine's is asked for.
        """
        if version != self.weight_version:
            raise ScriptError(f"an engine without a model has no policy {version!r} to load")

    async def generate(
        self, session: str, new_token_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        """The session's next action; with ``max_tokens`` of 0 only tokens are counted.

        Raises:
            ScriptError: there is no action that the engine may play.
        """
        length = self._lengths.get(session, 0) + len(new_token_ids)
        token_ids, logprobs, finish_reason = self._next(session, sampling)
        self._lengths[session] = length + len(token_ids)
        return Generation(
            token_ids=list(token_ids),
            logprobs=list(logprobs),
            finish_reason=finish_reason,
            prompt_tokens=length - self._hidden.get(session, 0),
            cached_tokens=0,
            generation_ms=0.0,
        )

    def _next(self, session: str, sampling: Sampling) -> KnownAction:
        if not sampling.max_tokens:
            return (), (), "length"
        position = self._positions.get(session, 0)
        self._positions[session] = position + 1
        return self._action(session, position, sampling)

    def fork(self, session: str, into: Sequence[str]) -> None:
        """Copies see what ``session`` has seen; each takes actions of its own."""
        for name in into:
            self._lengths[name] = self._lengths.get(session, 0)
            self._hidden[name] = self._hidden.get(session, 0)

    def window(
        self, session: str, prefix: int, start: int, drops: Sequence[int] | None = None
    ) -> None:
        """No token is remembered, only how many can be seen."""
        length = self._lengths.get(session, 0)
        self._hidden[session] = length - len(visible_context(range(length), prefix, start, drops))

    def close(self, session: str) -> None:
        """Forget how far the session got."""
        for known in (self._positions, self._lengths, self._hidden):
            known.pop(session, None)

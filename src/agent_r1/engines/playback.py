"""What engines without a model share: each stream goes on with actions that are known beforehand.

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
        """Length of each stream, in tokens."""
        self._hidden: dict[str, int] = {}
        """Of those, how many its window hides."""

    def _action(self, stream: str, position: int, sampling: Sampling) -> KnownAction:
        """The action that a stream takes at ``position``, counted from 0."""
        raise NotImplementedError(f"{type(self).__name__} must define _action()")

    def load(self, policy: Path, version: str) -> None:
        """Nothing to load.

        Raises:
            ScriptError: another version than the engine's is asked for.
        """
        if version != self.weight_version:
            raise ScriptError(f"an engine without a model has no policy {version!r} to load")

    async def generate(
        self, stream: str, new_token_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        """The stream's next action; with ``max_tokens`` of 0 only tokens are counted.

        Raises:
            ScriptError: there is no action that the engine may play.
        """
        length = self._lengths.get(stream, 0) + len(new_token_ids)
        token_ids, logprobs, finish_reason = self._next(stream, sampling)
        self._lengths[stream] = length + len(token_ids)
        return Generation(
            token_ids=list(token_ids),
            logprobs=list(logprobs),
            finish_reason=finish_reason,
            prompt_tokens=length - self._hidden.get(stream, 0),
            cached_tokens=0,
            generation_ms=0.0,
        )

    def _next(self, stream: str, sampling: Sampling) -> KnownAction:
        if not sampling.max_tokens:
            return (), (), "length"
        position = self._positions.get(stream, 0)
        self._positions[stream] = position + 1
        return self._action(stream, position, sampling)

    def fork(self, stream: str, into: Sequence[str]) -> None:
        """Copies see what ``stream`` has seen; each takes actions of its own."""
        for name in into:
            self._lengths[name] = self._lengths.get(stream, 0)
            self._hidden[name] = self._hidden.get(stream, 0)

    def window(
        self, stream: str, prefix: int, start: int, drops: Sequence[int] | None = None
    ) -> None:
        """No token is remembered, only how many can be seen."""
        length = self._lengths.get(stream, 0)
        self._hidden[stream] = length - len(visible_context(range(length), prefix, start, drops))

    def close(self, stream: str) -> None:
        """Forget how far the stream got."""
        for known in (self._positions, self._lengths, self._hidden):
            known.pop(stream, None)

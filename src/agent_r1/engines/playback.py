"""The base of engines without a model: each stream continues with actions known in advance.

Such actions run through the same loop as those of a policy, so their episodes have the same kind of
rows and tokens and the same environments.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from agent_r1.engines.base import Generation, Sampling
from agent_r1.mdp import visible_context

KnownAction = tuple[Sequence[int], Sequence[float], Literal["stop", "length"]]
"""(token ids, log-prob of each token, finish reason)"""


class ScriptError(RuntimeError):
    """The requested action or policy is not what the engine plays."""


class PlaybackEngine:
    """An `agent_r1.engines.base.Engine` without a model. Subclasses define `_action`."""

    def __init__(self, version: str):
        """``version``: the sha256 of the policy that acts, or a text in its place."""
        self.weight_version = version
        self._positions: dict[str, int] = {}
        self._lengths: dict[str, int] = {}
        """Length of each stream, in tokens."""
        self._hidden: dict[str, int] = {}
        """Stream → number of these tokens that its window hides."""

    def _action(self, stream: str, position: int, sampling: Sampling) -> KnownAction:
        """The stream's action at ``position``, counted from 0."""
        raise NotImplementedError(f"{type(self).__name__} must define _action()")

    def load(self, policy: Path, version: str) -> None:
        """Check the version; there is nothing to load.

        Raises:
            ScriptError: ``version`` differs from the engine's version.
        """
        if version != self.weight_version:
            raise ScriptError(f"an engine without a model has no policy {version!r} to load")

    async def generate(
        self, session: str, new_token_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        """The stream's next action. If ``max_tokens`` is 0, tokens are only counted.

        Raises:
            ScriptError: the engine has no action to play.
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

    def _next(self, stream: str, sampling: Sampling) -> KnownAction:
        if not sampling.max_tokens:
            return (), (), "length"
        position = self._positions.get(stream, 0)
        self._positions[stream] = position + 1
        return self._action(stream, position, sampling)

    def fork(self, session: str, into: Sequence[str]) -> None:
        """Open copies of ``session``. Each plays its own actions."""
        for name in into:
            self._lengths[name] = self._lengths.get(session, 0)
            self._hidden[name] = self._hidden.get(session, 0)

    def window(
        self, session: str, prefix: int, start: int, drops: Sequence[int] | None = None
    ) -> None:
        """Record how many tokens the window hides."""
        length = self._lengths.get(session, 0)
        self._hidden[session] = length - len(visible_context(range(length), prefix, start, drops))

    def close(self, session: str) -> None:
        """Forget the stream's position and lengths."""
        for known in (self._positions, self._lengths, self._hidden):
            known.pop(session, None)

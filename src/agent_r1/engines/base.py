"""The interface of an engine: a service that continues token streams, one stream per trajectory.

An engine knows token ids, but not chats, tools or tasks. A stream keeps all appended and sampled
tokens, so the keys and values of earlier turns are never computed again. The code above this
interface does not know whether the engine runs in this process or on a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agent_r1.errors import UserError


class EngineError(RuntimeError):
    """A caller used the engine in a way that cannot give correct tokens: a fault of the program."""


class UnsupportedModelError(UserError, EngineError):
    """The engine cannot run this model; the message says which part of it."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters for sampling one action."""

    max_tokens: int
    """Maximal number of sampled tokens. With 0, new tokens are only appended (and prefilled)."""
    stop_token_ids: tuple[int, ...]
    """Sampling one of these tokens ends the action. It is the action's last token."""
    seed: int
    """The draw of the action's i-th token depends only on (seed, i) and the logits."""
    temperature: float = 1.0
    """0 is greedy; log-probs are then those at temperature 1."""
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps all tokens."""
    min_p: float = 0.0


@dataclass(frozen=True, slots=True)
class Generation:
    """One sampled action."""

    token_ids: list[int]
    logprobs: list[float]
    """``log_softmax(logits / temperature)`` of each sampled token, before top-p/top-k/min-p."""
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    """Number of tokens visible before the action."""
    cached_tokens: int
    """Number of these tokens whose keys and values were in the cache."""
    generation_ms: float
    """Wall-clock milliseconds from request to result."""


class Engine(Protocol):
    """Continues token streams with one policy. A ``session`` names a trajectory\'s stream."""

    weight_version: str
    """sha256 of the loaded policy. The rollout checks it before it samples."""

    def load(self, policy: Path, version: str) -> None:
        """Load new weights and drop all caches. A version that is loaded is not loaded again."""
        ...

    async def generate(
        self, session: str, new_token_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        """Append tokens to the session's stream, then sample an action. Opens unknown streams."""
        ...

    def fork(self, session: str, into: Sequence[str]) -> None:
        """Open sessions as copies of ``session``, so that a group's prompt is computed once."""
        ...

    def window(
        self, session: str, prefix: int, start: int, drops: Sequence[int] | None = None
    ) -> None:
        """Move the visible window; see `agent_r1.mdp.visible_context`. Keys and values after the
        first change are computed again, because the old ones attended to dropped tokens."""
        ...

    def close(self, session: str) -> None:
        """Forget the stream and free its memory. Unknown streams are ignored."""
        ...

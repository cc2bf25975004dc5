"""What an engine is: a service that continues token streams, one stream per trajectory.

An engine knows token ids and nothing of chats, tools or tasks. A stream holds everything that was
appended and sampled so far, so what was computed for earlier turns is never computed again. Which
engine runs — in this process, or a server on another machine — nothing above this line knows.
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
    """How one action is sampled."""

    max_tokens: int
    """Sampled tokens at most. 0 only appends (and computes) the new tokens."""
    stop_token_ids: tuple[int, ...]
    """Sampling one of these ends the action; it is part of it."""
    seed: int
    """The draw of the action's i-th token depends on (seed, i) and the logits alone."""
    temperature: float = 1.0
    """0 is greedy; the log-probs are then those at temperature 1."""
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps all."""
    min_p: float = 0.0


@dataclass(frozen=True, slots=True)
class Generation:
    """One sampled action."""

    token_ids: list[int]
    logprobs: list[float]
    """log_softmax(logits / temperature) of each sampled token, before top-p/top-k/min-p."""
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    """Tokens visible before the action."""
    cached_tokens: int
    """Of those, how many were not computed again."""
    generation_ms: float


class Engine(Protocol):
    """Continues token streams with one policy at a time."""

    weight_version: str
    """sha256 of the loaded policy; asserted before any token is trusted."""

    def load(self, policy: Path, version: str) -> None:
        """New weights; every cache derived from old ones is dropped. No-op for equal versions."""
        ...

    async def generate(
        self, stream: str, new_token_ids: Sequence[int], sampling: Sampling
    ) -> Generation:
        """Append ``new_token_ids`` to the stream (opened if unknown), then sample an action."""
        ...

    def fork(self, stream: str, into: Sequence[str]) -> None:
        """New streams that start as copies of ``stream``: a group shares its prompt."""
        ...

    def window(
        self, stream: str, prefix: int, start: int, drops: Sequence[int] | None = None
    ) -> None:
        """Move the visible window; everything behind the prefix is computed again (the old keys
        had seen what was dropped)."""
        ...

    def close(self, stream: str) -> None:
        """Forget the stream and free what it holds. Unknown streams are ignored."""
        ...

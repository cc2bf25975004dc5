"""An engine's state for one trajectory, and requests for actions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_r1.engines.base import Generation, Sampling
from agent_r1.mdp import visible_context


@dataclass(slots=True, eq=False)
class TokenStream:
    """The tokens of one trajectory, and how many of them are computed."""

    name: str
    slot: int
    """The slot of its keys and values in the pool."""
    token_ids: list[int] = field(default_factory=list)
    """All tokens. The window's positions are positions in this list."""
    visible: list[int] = field(default_factory=list)
    """The tokens that the policy sees."""
    cached: int = 0
    """Number of leading visible tokens whose keys and values are in the slot. The last visible
    token is never one of them: feeding it gives the logits of the next token, also after a fork."""
    busy: bool = False
    """Whether a request of this stream is waiting or running."""
    closed: bool = False
    """Whether it was closed while busy. The slot is then released when the request is done."""

    def append(self, token_ids: Sequence[int]) -> None:
        """Append tokens to the stream. They are visible."""
        self.token_ids.extend(token_ids)
        self.visible.extend(token_ids)

    def show(self, prefix: int, start: int, drops: Sequence[int] | None) -> None:
        """Move the window; see `agent_r1.mdp.visible_context`.

        Keys and values stay valid up to the first visible token that changes. Later ones attended
        to dropped tokens, and their positions change.
        """
        visible = visible_context(self.token_ids, prefix, start, drops)
        same = 0
        for old, new in zip(self.visible[: self.cached], visible, strict=False):
            if old != new:
                break
            same += 1
        self.visible = visible
        self.cached = min(same, max(len(visible) - 1, 0))

    def forked(self, name: str, slot: int) -> TokenStream:
        """A copy with another name and slot. The slot's content is not copied here."""
        return TokenStream(name, slot, list(self.token_ids), list(self.visible), self.cached)


@dataclass(slots=True, eq=False)
class GenerationRequest:
    """A stream's request for an action."""

    stream: TokenStream
    sampling: Sampling
    future: asyncio.Future[Generation]
    loop: asyncio.AbstractEventLoop
    prompt_tokens: int
    cached_tokens: int
    started: float = field(default_factory=time.perf_counter)

    @property
    def order(self) -> tuple[int, str]:
        """Sort key for filling batches. Sorting by length reduces padding, and the order does not
        depend on the time of arrival."""
        return self.prompt_tokens, self.stream.name

    @property
    def last_position(self) -> int:
        """The last position in the cache that this request may write."""
        return self.prompt_tokens - 1 + max(self.sampling.max_tokens - 1, 0)

    def generation(self, token_ids: list[int], logprobs: list[float]) -> Generation:
        """The finished action."""
        stopped = bool(token_ids) and token_ids[-1] in self.sampling.stop_token_ids
        return Generation(
            token_ids=token_ids,
            logprobs=logprobs,
            finish_reason="stop" if stopped else "length",
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            generation_ms=(time.perf_counter() - self.started) * 1e3,
        )

    def reject(self, error: BaseException) -> None:
        """Raise the error in the task that waits for the action. Safe in any thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._set_error, error)

    def _set_error(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


def deliver(results: Sequence[tuple[GenerationRequest, Generation]]) -> None:
    """Give actions to the tasks that wait for them, with one call per event loop. Safe in any
    thread."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[GenerationRequest, Generation]]] = {}
    for request, generation in results:
        by_loop.setdefault(request.loop, []).append((request, generation))
    for loop, own in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_set_results, own)


def _set_results(results: Sequence[tuple[GenerationRequest, Generation]]) -> None:
    for request, generation in results:
        if not request.future.done():
            request.future.set_result(generation)

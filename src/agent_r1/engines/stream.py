"""One trajectory's token stream, as an engine keeps it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent_r1.engines.base import Generation, Sampling
from agent_r1.mdp import visible_context


@dataclass(slots=True, eq=False)
class TokenStream:
    """What was appended and sampled so far, and how much of it is already computed."""

    name: str
    slot: int
    """Where its keys and values stand in the pool."""
    token_ids: list[int] = field(default_factory=list)
    """All tokens; positions of the window refer to it."""
    visible: list[int] = field(default_factory=list)
    """The tokens that the policy sees."""
    cached: int = 0
    """Leading visible tokens whose keys and values stand in the slot. The last visible token is
    never among them: feeding it gives the logits of the next one, also after a fork."""
    busy: bool = False
    """A request of it is waiting or running."""
    closed: bool = False
    """Closed while busy: the slot is given back when the request is done."""

    def append(self, token_ids: Sequence[int]) -> None:
        """Add tokens to the end of the stream; they are visible."""
        self.token_ids.extend(token_ids)
        self.visible.extend(token_ids)

    def show(self, prefix: int, start: int, drops: Sequence[int] | None) -> None:
        """Move the window. Keys and values stay valid exactly as far as the visible tokens stay
        the same from the first on: behind that, each had seen what is gone, and stands at another
        position."""
        visible = visible_context(self.token_ids, prefix, start, drops)
        same = 0
        for old, new in zip(self.visible[: self.cached], visible, strict=False):
            if old != new:
                break
            same += 1
        self.visible = visible
        self.cached = min(same, max(len(visible) - 1, 0))

    def forked(self, name: str, slot: int) -> TokenStream:
        """A copy of it, but for the slot's content."""
        return TokenStream(name, slot, list(self.token_ids), list(self.visible), self.cached)


@dataclass(slots=True, eq=False)
class GenerationRequest:
    """A stream that wants an action."""

    stream: TokenStream
    sampling: Sampling
    future: asyncio.Future[Generation]
    loop: asyncio.AbstractEventLoop
    prompt_tokens: int
    cached_tokens: int
    started: float = field(default_factory=time.perf_counter)

    @property
    def order(self) -> tuple[int, str]:
        """Batches are filled in this order: neighbours in length waste little on padding, and
        neither the time nor the order of arrival has a say."""
        return self.prompt_tokens, self.stream.name

    @property
    def last_position(self) -> int:
        """The last position that this request may write."""
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
        """Hand an error to the task that waits, on its event loop."""
        if not self.future.done():
            self.future.set_exception(error)


def deliver(results: Sequence[tuple[GenerationRequest, Generation]]) -> None:
    """Hand actions to the tasks that wait for them, on their event loop."""
    for request, generation in results:
        if not request.future.done():
            request.future.set_result(generation)

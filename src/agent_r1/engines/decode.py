"""Decode: sample the actions of a batch of streams, one token per row and step.

1. `admit` copies the slots of new rows into the working cache. Running rows stay in place.
2. `step` feeds each row's last token at that row's own position, samples the next token, and
   returns the actions that ended. It loops in Python only over rows that ended.
3. When a row ends, its new keys and values are copied to its slot at once, so that its stream can
   continue.
4. `compact` moves rows from the end of the batch into the places of ended rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from agent_r1.engines.base import Generation
from agent_r1.engines.cache import SlotPool, WorkingCache
from agent_r1.engines.sampling import Choice, sample, uniforms
from agent_r1.engines.stream import GenerationRequest

_NO_TOKEN = -1
"""Pads the lists of stop tokens. No token has this id."""


@dataclass(slots=True)
class _Rows:
    """The state of each row. The first dimension of every tensor is the row."""

    choice: Choice
    start: Tensor
    """Position of the last visible token when the action began."""
    budget: Tensor
    """Maximal number of tokens of the action."""
    stops: Tensor
    """[rows, n] stop tokens, padded with -1."""
    uniform: Tensor
    """[rows, n] float64; column i is the draw of the action's i-th token."""
    token: Tensor
    """The token that the next step feeds."""
    count: Tensor
    """Number of tokens sampled so far."""
    active: Tensor
    """False once the action ended."""
    sampled: Tensor
    """[rows, n] token ids of the action."""
    logprobs: Tensor
    """[rows, n] float32, of the sampled tokens."""

    @staticmethod
    def of(requests: Sequence[GenerationRequest], device: torch.device) -> _Rows:
        samplings = [request.sampling for request in requests]
        longest = max(sampling.max_tokens for sampling in samplings)
        stops = np.full(
            (len(requests), max(len(sampling.stop_token_ids) for sampling in samplings)), _NO_TOKEN
        )
        for row, sampling in enumerate(samplings):
            stops[row, : len(sampling.stop_token_ids)] = sampling.stop_token_ids
        seeds = np.array([sampling.seed & 0xFFFFFFFFFFFFFFFF for sampling in samplings], np.uint64)

        def tensor(values: list, dtype: torch.dtype) -> Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        size = (len(requests), longest)
        return _Rows(
            choice=Choice(
                tensor([sampling.temperature for sampling in samplings], torch.float32),
                tensor([sampling.top_p for sampling in samplings], torch.float64),
                tensor([sampling.top_k for sampling in samplings], torch.int64),
                tensor([sampling.min_p for sampling in samplings], torch.float64),
            ),
            start=tensor([request.prompt_tokens - 1 for request in requests], torch.int64),
            budget=tensor([sampling.max_tokens for sampling in samplings], torch.int64),
            stops=torch.from_numpy(stops.astype(np.int64)).to(device),
            uniform=torch.from_numpy(uniforms(seeds, longest)).to(device),
            token=tensor([request.stream.visible[-1] for request in requests], torch.int64),
            count=torch.zeros(len(requests), dtype=torch.int64, device=device),
            active=torch.ones(len(requests), dtype=torch.bool, device=device),
            sampled=torch.zeros(size, dtype=torch.int64, device=device),
            logprobs=torch.zeros(size, dtype=torch.float32, device=device),
        )

    def take(self, rows: Tensor) -> _Rows:
        return _Rows(self.choice.take(rows), *(getattr(self, name)[rows] for name in _TENSORS))

    def join(self, other: _Rows) -> _Rows:
        return _Rows(
            Choice.join(self.choice, other.choice),
            *(_stack(getattr(self, name), getattr(other, name), name) for name in _TENSORS),
        )


_TENSORS = [name for name in _Rows.__slots__ if name != "choice"]


def _stack(first: Tensor, second: Tensor, name: str) -> Tensor:
    if first.ndim == 2:
        width = max(first.shape[1], second.shape[1])
        fill = _NO_TOKEN if name == "stops" else 0
        first, second = (
            torch.nn.functional.pad(one, (0, width - one.shape[1]), value=fill)
            for one in (first, second)
        )
    return torch.cat([first, second])


class DecodeBatch:
    """The rows that are sampled now."""

    def __init__(self, model: PreTrainedModel, pool: SlotPool, cache: WorkingCache) -> None:
        self._model = model
        self._pool = pool
        self._cache = cache
        self._rows: _Rows  # set by the first `admit`
        self._mask = torch.empty(0, 0)
        self._visible = 0
        self.requests: list[GenerationRequest] = []
        """One per row, including ended rows until the next `compact`."""
        self.active = 0
        """Number of rows that have not ended."""

    def admit(self, requests: Sequence[GenerationRequest]) -> None:
        """Add rows. The slot of each must hold all of its visible tokens but the last."""
        if not requests:
            return
        first = len(self.requests)
        rows = _Rows.of(requests, self._cache.shape.device)
        self._rows = self._rows.join(rows) if first else rows
        self.requests.extend(requests)
        self.active += len(requests)
        last = max(request.last_position for request in self.requests)
        self._cache.reserve(len(self.requests), last + 1)
        longest = max(request.prompt_tokens for request in requests) - 1
        slots = [request.stream.slot for request in requests]
        self._cache.fetch(self._pool, slots, longest, first)
        self._refresh()

    def step(self) -> list[tuple[GenerationRequest, Generation]]:
        """Sample one token for every active row. Returns the actions that ended."""
        rows = self._rows
        positions = rows.start + rows.count - (~rows.active).long()
        self._visible += 1
        self._mask.scatter_(1, positions[:, None], 0.0)
        self._cache.place(positions[:, None], self._visible)
        logits_B_V = self._model(
            input_ids=rows.token[:, None],
            attention_mask=self._mask[:, None, None, : self._visible],
            position_ids=positions[:, None],
            cache=self._cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        at = rows.count.clamp(max=rows.uniform.shape[1] - 1)[:, None]
        uniform = rows.uniform.gather(1, at).squeeze(1)
        token, logprob = sample(logits_B_V.float(), rows.choice, uniform)
        # An ended row repeats its last token at its last position until `compact` removes it.
        rows.token = torch.where(rows.active, token, rows.token)
        kept = rows.active[:, None]
        rows.sampled.scatter_(1, at, torch.where(kept, token[:, None], rows.sampled.gather(1, at)))
        rows.logprobs.scatter_(
            1, at, torch.where(kept, logprob[:, None], rows.logprobs.gather(1, at))
        )
        rows.count += rows.active
        stopped = (token[:, None] == rows.stops).any(1)
        ended = rows.active & (stopped | (rows.count >= rows.budget))
        rows.active &= ~ended
        return self._end(torch.nonzero(ended).flatten())

    def _end(self, ended: Tensor) -> list[tuple[GenerationRequest, Generation]]:
        if not len(ended):
            return []
        rows = self._rows
        requests = [self.requests[row] for row in ended.tolist()]
        slots = torch.tensor([request.stream.slot for request in requests], device=ended.device)
        self._cache.store(self._pool, ended, slots, rows.start[ended], rows.count[ended])
        tokens, logprobs = rows.sampled[ended].tolist(), rows.logprobs[ended].tolist()
        results = []
        for row, (request, count) in enumerate(
            zip(requests, rows.count[ended].tolist(), strict=True)
        ):
            action = request.generation(tokens[row][:count], logprobs[row][:count])
            request.stream.append(action.token_ids)
            request.stream.cached = len(request.stream.visible) - 1
            results.append((request, action))
        self.active -= len(results)
        return results

    def compact(self) -> None:
        """Remove the ended rows."""
        if self.active == len(self.requests):
            return
        rows = self._rows
        holes = torch.nonzero(~rows.active[: self.active]).flatten()
        movers = torch.nonzero(rows.active[self.active :]).flatten() + self.active
        order = torch.arange(self.active, device=holes.device)
        order[holes] = movers
        if len(holes):
            self._cache.move(movers, holes, self._visible)
        self._rows = rows.take(order)
        self.requests = [self.requests[row] for row in order.tolist()]
        self._refresh()

    def _refresh(self) -> None:
        """Recompute the mask and the visible length for the current rows."""
        rows = self._rows
        ends = rows.start + rows.count
        self._visible = int(ends.max()) if len(ends) else 0
        positions = torch.arange(self._cache.length, device=ends.device)
        shape = self._cache.shape
        self._mask = torch.zeros(
            (len(ends), self._cache.length), dtype=shape.dtype, device=shape.device
        ).masked_fill_(positions >= ends[:, None], -torch.inf)

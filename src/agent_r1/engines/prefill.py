"""Computing the keys and values of tokens that are known: prompts and observations.

All but the last visible token of a stream are computed here; the last one is fed by the decoder,
whose logits then belong to the first sampled token. So no logits are needed here at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from agent_r1.engines.cache import SlotPool, WorkingCache
from agent_r1.engines.stream import TokenStream

_BUCKET_TOKENS = 2048
"""Padded tokens of one forward pass at most. Bounds the activations' memory, and on a CPU keeps
them in memory that is reused: twice as fast as 8192 with a small model."""
_SHORTEST = 0.75
"""A bucket's shortest chunk is at least this part of its longest: bounds the padding."""


def missing(stream: TokenStream) -> int:
    """Tokens of a stream that must be computed before its next action can be sampled."""
    return max(len(stream.visible) - 1 - stream.cached, 0)


def prefill(
    model: PreTrainedModel, streams: Sequence[TokenStream], pool: SlotPool, cache: WorkingCache
) -> None:
    """Compute what is missing of some streams: their ``cached`` moves up to the last token."""
    for bucket in _buckets([stream for stream in streams if missing(stream)]):
        _compute(model, bucket, pool, cache)


def _buckets(streams: list[TokenStream]) -> Iterator[list[TokenStream]]:
    """Streams whose missing parts are about equally long, longest first."""
    bucket: list[TokenStream] = []
    for stream in sorted(streams, key=lambda one: (-missing(one), -one.cached, one.name)):
        if bucket:
            longest = missing(bucket[0])
            full = (len(bucket) + 1) * longest > _BUCKET_TOKENS
            if full or missing(stream) < _SHORTEST * longest:
                yield bucket
                bucket = []
        bucket.append(stream)
    if bucket:
        yield bucket


def _compute(
    model: PreTrainedModel, bucket: list[TokenStream], pool: SlotPool, cache: WorkingCache
) -> None:
    device, dtype = cache.shape.device, cache.shape.dtype
    counts = [missing(stream) for stream in bucket]
    starts = torch.tensor([stream.cached for stream in bucket], device=device)
    width = max(counts)
    tokens_B_C = np.zeros((len(bucket), width), np.int64)
    for row, (stream, count) in enumerate(zip(bucket, counts, strict=True)):
        tokens_B_C[row, :count] = stream.visible[stream.cached : stream.cached + count]
    positions_B_C = starts[:, None] + torch.arange(width, device=device)
    visible = int(positions_B_C.max()) + 1
    seen_B_C_T = torch.arange(visible, device=device) <= positions_B_C[:, :, None]
    mask = torch.zeros(seen_B_C_T.shape, dtype=dtype, device=device)
    mask.masked_fill_(~seen_B_C_T, -torch.inf)
    slots = [stream.slot for stream in bucket]

    cache.reserve(len(bucket), visible)
    cache.fetch(pool, slots, max(stream.cached for stream in bucket))
    cache.place(positions_B_C, visible)
    model(
        input_ids=torch.from_numpy(tokens_B_C).to(device),
        attention_mask=mask[:, None],
        position_ids=positions_B_C,
        cache=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    cache.store(
        pool,
        rows=torch.arange(len(bucket), device=device),
        slots=torch.tensor(slots, device=device),
        starts=starts,
        counts=torch.tensor(counts, device=device),
    )
    for stream, count in zip(bucket, counts, strict=True):
        stream.cached += count

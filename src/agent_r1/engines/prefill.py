"""Prefill: compute the keys and values of known tokens (prompts and observations).

All visible tokens of a stream but the last are computed here. Decode feeds the last one, whose
logits give the first sampled token. So prefill needs no logits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import PreTrainedModel

from agent_r1.engines.cache import SlotPool, WorkingCache
from agent_r1.engines.stream import TokenStream

_BUCKET_TOKENS = 2048
"""Maximal number of tokens in one forward pass, including padding. It bounds the memory of the
activations. On a CPU this memory is then reused: twice as fast as 8192 with a small model."""
_SHORTEST = 0.75
"""The shortest chunk of a bucket has at least this share of the longest. It bounds the padding."""


def missing(stream: TokenStream) -> int:
    """Number of tokens to compute before the stream's next action can be sampled."""
    return max(len(stream.visible) - 1 - stream.cached, 0)


def prefill(
    model: PreTrainedModel, streams: Sequence[TokenStream], pool: SlotPool, cache: WorkingCache
) -> None:
    """Compute the missing keys and values of the streams and advance their ``cached``."""
    for bucket in _buckets([stream for stream in streams if missing(stream)]):
        _compute(model, bucket, pool, cache)


def _buckets(streams: list[TokenStream]) -> Iterator[list[TokenStream]]:
    """Groups of streams whose missing parts have similar lengths, longest first."""
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

"""The KV cache: keys and values of all streams, and of the batch that runs.

1. A stream owns a slot of the `SlotPool` from its first token until it is closed. The slot keeps
   the keys and values of earlier turns.
2. A batch runs on a `WorkingCache`. The slots of its streams are copied in once, the model writes
   each row's next keys and values at that row's own position, and the new ones are copied back
   once.
3. Both keep their memory between batches: allocating new pages costs more than the copy.

Rows differ in length, so positions after a row's end hold old values. They are finite and masked,
so they do not change a bit of the result.

The layout is [row, head, position, dim] per layer: attention kernels read a head's keys as one
block, which is three times faster on a CPU than [row, position, head, dim].
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Cache, PreTrainedConfig

_POSITIONS = 64
"""Lengths are rounded up to a multiple of this, so that tensors are rarely reallocated."""


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Shape, type and device of the keys and values of one position."""

    layers: int
    heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device

    @staticmethod
    def of(config: PreTrainedConfig, dtype: torch.dtype, device: torch.device) -> CacheShape:
        """The shape for a model with this text configuration."""
        width = getattr(config, "head_dim", None)
        return CacheShape(
            layers=config.num_hidden_layers,
            heads=getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
            head_dim=width or config.hidden_size // config.num_attention_heads,
            dtype=dtype,
            device=device,
        )

    def empty(self, rows: int, length: int) -> list[Tensor]:
        """A tensor of zeros [rows, heads, length, head_dim] for each layer."""
        size = (rows, self.heads, length, self.head_dim)
        return [torch.zeros(size, dtype=self.dtype, device=self.device) for _ in range(self.layers)]


class _Buffers:
    """Keys and values per layer, [rows, heads, length, head_dim]. They only grow."""

    def __init__(self, shape: CacheShape) -> None:
        self.shape = shape
        self.rows = 0
        self.length = 0
        self.keys: list[Tensor] = shape.empty(0, 0)
        self.values: list[Tensor] = shape.empty(0, 0)

    def reserve(self, rows: int, length: int) -> None:
        """Grow to at least this size. The content keeps its place."""
        if rows <= self.rows and length <= self.length:
            return
        rows = max(rows, self.rows)
        length = max(-(-length // _POSITIONS) * _POSITIONS, self.length)
        for tensors in (self.keys, self.values):
            for layer, old in enumerate(tensors):
                size = (rows, self.shape.heads, length, self.shape.head_dim)
                new = old.new_zeros(size)
                new[: self.rows, :, : self.length] = old
                tensors[layer] = new
        self.rows, self.length = rows, length

    def flat(self, rows_N: Tensor, positions_N: Tensor) -> Tensor:
        """int64[N * heads]: indices of the (row, position) pairs in ``tensor.view(-1, dim)``."""
        heads = torch.arange(self.shape.heads, device=rows_N.device)
        return (
            (rows_N[:, None] * self.shape.heads + heads) * self.length + positions_N[:, None]
        ).flatten()


class SlotPool(_Buffers):
    """One slot per open stream. Streams open and fork while a worker thread computes."""

    def __init__(self, shape: CacheShape) -> None:
        super().__init__(shape)
        self._free: list[int] = []
        self.lock = threading.RLock()
        """Held while content is read or written, as growing replaces the tensors."""

    def reserve(self, rows: int, length: int) -> None:
        """See `_Buffers.reserve`."""
        with self.lock:
            super().reserve(rows, length)

    def open(self) -> int:
        """Take a free slot. Its content is undefined until it is written."""
        with self.lock:
            if not self._free:
                old = self.rows
                self.reserve(max(2 * old, 16), self.length)
                self._free.extend(range(self.rows - 1, old - 1, -1))
            return self._free.pop()

    def release(self, slot: int) -> None:
        """Give a slot back."""
        with self.lock:
            self._free.append(slot)

    def copy(self, source: int, targets: Sequence[int], length: int) -> None:
        """Copy the first ``length`` positions of a slot into others."""
        index = torch.tensor(list(targets), device=self.shape.device)
        with self.lock:
            for tensor in (*self.keys, *self.values):
                shared = tensor[source, :, :length].expand(len(index), -1, -1, -1)
                tensor[:, :, :length].index_copy_(0, index, shared)


class WorkingCache(_Buffers, Cache):
    """The rows of one batch, as a cache for models of transformers."""

    def __init__(self, shape: CacheShape) -> None:
        Cache.__init__(self, layers=[])
        _Buffers.__init__(self, shape)
        self._targets = torch.empty(0, dtype=torch.int64)
        self._active = 0
        self._visible = 0

    def fetch(self, pool: SlotPool, slots: Sequence[int], length: int, first_row: int = 0) -> None:
        """Copy the first ``length`` positions of ``slots`` to the rows from ``first_row`` on."""
        if not slots or not length:
            return
        heads, width = self.shape.heads, length * self.shape.head_dim
        index = torch.tensor(list(slots), device=self.shape.device)[:, None] * heads
        index = (index + torch.arange(heads, device=index.device)).flatten()
        rows = slice(first_row * heads, (first_row + len(slots)) * heads)
        with pool.lock:
            for mine, theirs in self._pairs(pool):
                source = theirs.view(pool.rows * heads, -1)[:, :width]
                target = mine.view(self.rows * heads, -1)[rows, :width]
                torch.index_select(source, 0, index, out=target)

    def store(
        self, pool: SlotPool, rows: Tensor, slots: Tensor, starts: Tensor, counts: Tensor
    ) -> None:
        """Copy the positions [start, start + count) of each row into its slot; all are int64[N]."""
        owner = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), counts)
        first = (counts.cumsum(0) - counts)[owner]
        positions = starts[owner] + torch.arange(len(owner), device=rows.device) - first
        source = self.flat(rows[owner], positions)
        width = self.shape.head_dim
        with pool.lock:
            target = pool.flat(slots[owner], positions)
            for mine, theirs in self._pairs(pool):
                theirs.view(-1, width).index_copy_(0, target, mine.view(-1, width)[source])

    def _pairs(self, pool: SlotPool) -> list[tuple[Tensor, Tensor]]:
        """Each tensor of this cache with the pool's tensor of the same layer."""
        return [
            *zip(self.keys, pool.keys, strict=True),
            *zip(self.values, pool.values, strict=True),
        ]

    def move(self, sources: Tensor, targets: Tensor, length: int) -> None:
        """Copy the first ``length`` positions of the source rows over the target rows."""
        for tensor in (*self.keys, *self.values):
            part = tensor[:, :, :length]
            part.index_copy_(0, targets, part.index_select(0, sources))

    def place(self, positions_B_C: Tensor, visible: int) -> None:
        """Set where the next forward pass writes, and how many positions it reads.

        Args:
            positions_B_C: int64; the position of each of the C new tokens of the first B rows.
            visible: number of positions, from 0 on, that the attention gets. The mask hides those
                that a token must not see.
        """
        self._active = len(positions_B_C)
        self._visible = visible
        heads, device = self.shape.heads, positions_B_C.device
        rows = torch.arange(self._active, device=device)[:, None] * heads
        rows = (rows + torch.arange(heads, device=device)) * self.length
        self._targets = (rows[:, :, None] + positions_B_C[:, None, :]).flatten()

    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        layer_idx: int,
        *args: object,
        **kwargs: object,
    ) -> tuple[Tensor, Tensor]:
        """Store a layer's new keys and values [B, heads, C, dim]; see `place`.

        Each attention layer calls this and attends to the result, [B, heads, visible, dim].
        """
        for tensor, new in (
            (self.keys[layer_idx], key_states),
            (self.values[layer_idx], value_states),
        ):
            tensor.view(-1, self.shape.head_dim).index_copy_(
                0, self._targets, new.reshape(-1, self.shape.head_dim)
            )
        shown = (slice(self._active), slice(None), slice(self._visible))
        return self.keys[layer_idx][shown], self.values[layer_idx][shown]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Number of positions that the attention gets. Token positions are always explicit."""
        return self._visible

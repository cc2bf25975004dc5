"""Where the keys and values of the streams stand.

1. A stream owns a slot of the `SlotPool` from its first token to its close: what was computed for
   earlier turns waits there.
2. A batch runs on a `WorkingCache`: the slots that take part are copied in once, the model writes
   each row's next keys and values at that row's own position, and what is new is copied back once.
3. Both keep their memory from batch to batch: fresh pages cost more than the copy.

Rows differ in length, so positions behind a row's end hold leftovers. They are finite and masked,
and masked finite numbers change no bit of the result.

Layout is [row, head, position, dim] per layer: the attention kernels read a head's keys as one
block (three times faster on a CPU than [row, position, head, dim]).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Cache

_POSITIONS = 64
"""Lengths are rounded up to a multiple of this, so that few tensors are ever made."""


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What one position of one sequence holds, and where."""

    layers: int
    heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device

    def empty(self, rows: int, length: int) -> list[Tensor]:
        """Zeros [rows, heads, length, head_dim] for each layer."""
        size = (rows, self.heads, length, self.head_dim)
        return [torch.zeros(size, dtype=self.dtype, device=self.device) for _ in range(self.layers)]


class _Buffers:
    """Keys and values per layer, [rows, heads, length, head_dim], that only ever grow."""

    def __init__(self, shape: CacheShape) -> None:
        self.shape = shape
        self.rows = 0
        self.length = 0
        self.keys: list[Tensor] = shape.empty(0, 0)
        self.values: list[Tensor] = shape.empty(0, 0)

    def reserve(self, rows: int, length: int) -> None:
        """Make room; what stands there stays where it is."""
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
        """int64[N * heads]: where these (row, position) pairs stand in ``tensor.view(-1, dim)``."""
        heads = torch.arange(self.shape.heads, device=rows_N.device)
        return (
            (rows_N[:, None] * self.shape.heads + heads) * self.length + positions_N[:, None]
        ).flatten()


class SlotPool(_Buffers):
    """One slot per open stream; streams open and fork while a worker thread computes."""

    def __init__(self, shape: CacheShape) -> None:
        super().__init__(shape)
        self._free: list[int] = []
        self.lock = threading.RLock()
        """Held while content is read or written: growing replaces the tensors."""

    def reserve(self, rows: int, length: int) -> None:
        """See `_Buffers.reserve`."""
        with self.lock:
            super().reserve(rows, length)

    def open(self) -> int:
        """A free slot; its content is undefined until it is written."""
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
    """The rows of one batch, as the models of transformers want a cache."""

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
        """Copy positions [start, start + count) of some rows into their slots; all int64[N]."""
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
        """Each tensor of this cache with the pool's."""
        return [
            *zip(self.keys, pool.keys, strict=True),
            *zip(self.values, pool.values, strict=True),
        ]

    def move(self, sources: Tensor, targets: Tensor, length: int) -> None:
        """Copy rows over others, up to a position."""
        for tensor in (*self.keys, *self.values):
            part = tensor[:, :, :length]
            part.index_copy_(0, targets, part.index_select(0, sources))

    def place(self, positions_B_C: Tensor, visible: int) -> None:
        """Say where the next forward pass writes, and how many positions it looks at.

        Args:
            positions_B_C: int64; the position of each of the C new tokens of the first B rows.
            visible: positions from 0 on that the attention is given; the mask does the rest.
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
        """Called by each attention layer with its new [B, heads, C, dim]; see `place`."""
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
        """Positions that the attention is given; positions are always passed explicitly."""
        return self._visible

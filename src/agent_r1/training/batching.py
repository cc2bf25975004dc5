"""Micro-batches of sequences: similar lengths together, padded on the right.

With causal attention a token never sees what stands to its right, so right padding needs no mask
and changes nothing before it. Where the padding is follows from lengths, never from comparing ids
with a pad id: that id may have been sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from agent_r1.training.sequences import Sequences

_FILLER = 0  # any valid id: nothing that is scored can see it


@dataclass(frozen=True)
class MicroBatch:
    """A padded block of sequences and the action tokens that are scored in it."""

    tokens_B_L: torch.Tensor
    """int64; right-padded."""
    predictors_N: torch.Tensor
    """int64: positions in the flattened ``tokens_B_L`` that predict the scored tokens."""
    targets_N: torch.Tensor
    """int64: ids of the scored tokens."""
    actions_N: torch.Tensor
    """int64: their flat action indices."""

    def where_predicted(self, states_B_L_D: torch.Tensor) -> torch.Tensor:
        """[N, D] of [B, L, D]: what stands at the positions that predict the scored tokens."""
        # Every predictor occurs once, so the backward of the selection adds nothing up.
        places = self.predictors_N.to(states_B_L_D.device)
        return states_B_L_D.flatten(0, 1).index_select(0, places)


def micro_batches(
    sequences: Sequences, chosen: np.ndarray, size: int, scored: np.ndarray | None = None
) -> Iterator[MicroBatch]:
    """The ``chosen`` sequences in blocks of at most ``size``, longest first.

    Args:
        sequences: where they come from.
        chosen: int64 indices of sequences.
        size: sequences per block.
        scored: bool[action tokens]: score only these; a sequence without any is left out.
    """
    lengths = sequences.tokens.lengths[chosen]
    by_length = chosen[np.lexsort((chosen, -lengths))]
    if scored is not None:
        by_length = by_length[_any_scored(sequences, by_length, scored)]
    for begin in range(0, len(by_length), size):
        yield collate(sequences, by_length[begin : begin + size], scored)


def _any_scored(sequences: Sequences, chosen: np.ndarray, scored: np.ndarray) -> np.ndarray:
    counts = np.concatenate([[0], np.cumsum(scored[sequences.actions.values])])
    offsets = sequences.actions.offsets
    return counts[offsets[chosen + 1]] > counts[offsets[chosen]]


def collate(
    sequences: Sequences, chosen: np.ndarray, scored: np.ndarray | None = None
) -> MicroBatch:
    """One padded block of the ``chosen`` sequences; see `micro_batches`."""
    # The last token of a sequence is only ever predicted.
    width = int(sequences.tokens.lengths[chosen].max()) - 1
    tokens = np.full((len(chosen), width), _FILLER, np.int64)
    predictors, targets, actions = [], [], []
    for line, index in enumerate(chosen):
        ids = _row(sequences.tokens, index)
        tokens[line, : len(ids) - 1] = ids[:-1]
        position, action = _row(sequences.predictors, index), _row(sequences.actions, index)
        if scored is not None:
            position, action = position[scored[action]], action[scored[action]]
        predictors.append(line * width + position)
        targets.append(ids[position + 1])
        actions.append(action)
    return MicroBatch(
        torch.from_numpy(tokens),
        torch.from_numpy(np.concatenate(predictors)),
        torch.from_numpy(np.concatenate(targets)),
        torch.from_numpy(np.concatenate(actions)),
    )


def _row(column, index: int) -> np.ndarray:
    return column.values[column.offsets[index] : column.offsets[index + 1]]

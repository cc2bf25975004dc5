"""Micro-batches of sequences: similar lengths together, padded on the right or packed.

1. Padded: one row per sequence. With causal attention a token never sees tokens to its right, so
   right padding needs no mask. Padding is located by lengths, never by comparing ids with the pad
   id: the policy may have sampled that id.
2. Packed: all sequences one after another in one row, each with positions from 0. Given positions
   and no mask, transformers restarts attention where positions restart (`masking_utils.
   find_packed_sequence_indices`; flash attention uses the same borders), so no sequence sees
   another. `check_packing` verifies this for a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from agent_r1.parameters import ParameterError
from agent_r1.tables.arrays import Ragged
from agent_r1.training.sequences import Sequences

_FILLER = 0  # any valid id: no scored token can see it


@dataclass(frozen=True)
class MicroBatch:
    """A block of sequences and its scored action tokens."""

    tokens_B_L: torch.Tensor
    """int64 token ids; right-padded, or one row of packed sequences."""
    predictors_N: torch.Tensor
    """int64: positions in the flattened ``tokens_B_L`` that predict the scored tokens."""
    targets_N: torch.Tensor
    """int64: ids of the scored tokens."""
    actions_N: torch.Tensor
    """int64: flat action indices of the scored tokens."""
    positions_B_L: torch.Tensor | None = None
    """int64: position of each token in its sequence; None if every row is one sequence."""

    def model_inputs(self, device: torch.device) -> dict[str, Any]:
        """The keyword arguments for a transformers model."""
        inputs = {"input_ids": self.tokens_B_L.to(device), "use_cache": False}
        if self.positions_B_L is not None:
            inputs["position_ids"] = self.positions_B_L.to(device)
        return inputs

    def where_predicted(self, states_B_L_D: torch.Tensor) -> torch.Tensor:
        """[B, L, D] → [N, D]: the states at the positions that predict the scored tokens."""
        # Every predictor occurs once, so the backward pass of the selection sums nothing.
        places = self.predictors_N.to(states_B_L_D.device)
        return states_B_L_D.flatten(0, 1).index_select(0, places)


def micro_batches(
    sequences: Sequences,
    chosen: np.ndarray,
    size: int,
    scored: np.ndarray | None = None,
    packed: bool = False,
) -> Iterator[MicroBatch]:
    """The ``chosen`` sequences in blocks of at most ``size``, longest first.

    Args:
        sequences: all sequences.
        chosen: int64: indices of the sequences to use.
        size: sequences per block.
        scored: bool[action tokens]: score only these; sequences without any are left out.
        packed: pack instead of padding; only for models that `check_packing` accepts.
    """
    lengths = sequences.tokens.lengths[chosen]
    by_length = chosen[np.lexsort((chosen, -lengths))]
    if scored is not None:
        by_length = by_length[_any_scored(sequences, by_length, scored)]
    for begin in range(0, len(by_length), size):
        yield collate(sequences, by_length[begin : begin + size], scored, packed)


def _any_scored(sequences: Sequences, chosen: np.ndarray, scored: np.ndarray) -> np.ndarray:
    counts = np.concatenate([[0], np.cumsum(scored[sequences.actions.values])])
    offsets = sequences.actions.offsets
    return counts[offsets[chosen + 1]] > counts[offsets[chosen]]


def collate(
    sequences: Sequences,
    chosen: np.ndarray,
    scored: np.ndarray | None = None,
    packed: bool = False,
) -> MicroBatch:
    """One block of the ``chosen`` sequences; see `micro_batches`."""
    # The last token of a sequence is only a target, never an input.
    lengths = sequences.tokens.lengths[chosen] - 1
    rooms = lengths if packed else np.full(len(chosen), lengths.max())
    begins = np.cumsum(rooms) - rooms
    tokens = np.full(rooms.sum(), _FILLER, np.int64)
    predictors, targets, actions = [], [], []
    for begin, length, index in zip(begins, lengths, chosen, strict=True):
        ids = _row(sequences.tokens, index)
        tokens[begin : begin + length] = ids[:-1]
        position, action = _row(sequences.predictors, index), _row(sequences.actions, index)
        if scored is not None:
            position, action = position[scored[action]], action[scored[action]]
        predictors.append(begin + position)
        targets.append(ids[position + 1])
        actions.append(action)
    positions = np.arange(len(tokens)) - np.repeat(begins, rooms)
    rows = 1 if packed else len(chosen)
    return MicroBatch(
        torch.from_numpy(tokens).view(rows, -1),
        torch.from_numpy(np.concatenate(predictors)),
        torch.from_numpy(np.concatenate(targets)),
        torch.from_numpy(np.concatenate(actions)),
        torch.from_numpy(positions)[None] if packed else None,
    )


def _row(column: Ragged, index: int) -> np.ndarray:
    return column.values[column.offsets[index] : column.offsets[index + 1]]


@torch.no_grad()
def check_packing(model: PreTrainedModel, key: str) -> None:
    """Check on a small example that packed sequences do not see each other in ``model``.

    Args:
        model: the model to check.
        key: the parameter that asks for packing, for the message.

    Raises:
        ParameterError: they see each other, as in recurrent models and models with their own masks.
    """
    vocabulary = model.config.get_text_config().vocab_size
    ids = torch.arange(12, device=model.device)[None] % vocabulary
    positions = torch.cat([torch.arange(7), torch.arange(5)])[None].to(model.device)
    decoder = model.base_model
    packed = decoder(input_ids=ids, position_ids=positions, use_cache=False).last_hidden_state
    parts = [decoder(input_ids=part, use_cache=False) for part in ids.split([7, 5], dim=1)]
    alone = torch.cat([part.last_hidden_state for part in parts], dim=1)
    distance = (packed - alone).float().norm() / alone.float().norm()
    if not distance < (1e-4 if alone.dtype.itemsize > 2 else 0.05):  # more than rounding
        raise ParameterError(
            f"{key} is true, but packed sequences see each other in {type(model).__name__} with "
            f"{model.config._attn_implementation} attention: set {key} to false"
        )

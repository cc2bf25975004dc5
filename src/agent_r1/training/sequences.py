"""From rollouts to training sequences, without rendering or tokenising again.

1. The stream of a trajectory is context(0) + action(0) + context(1) + action(1) + …: exactly the
   ids that the policy saw and sampled.
2. Consecutive steps share **one** sequence while the visible context only grows (the window does
   not move). One causal forward pass over it scores all their actions.
3. Each action token is scored at the position that predicts it, one before its own. If a token of
   an earlier sequence is still visible in a later one, it is context there. So every action token
   is scored exactly once, in the context it was sampled in.

Arrays per action token are in *flat action order*: row after row of the table, the tokens of each
row in order. This is the order of the flattened list columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from agent_r1.mdp import ActionType
from agent_r1.schemas import SchemaError
from agent_r1.tables.arrays import Ragged, ragged
from agent_r1.tables.trajectories import Trajectories, find_trajectories


@dataclass(frozen=True)
class Sequences:
    """Token sequences whose action tokens are scored or trained on."""

    tokens: Ragged
    """int64 token ids of each sequence; each ends with an action token."""
    predictors: Ragged
    """int64: positions in the sequence that predict its action tokens."""
    actions: Ragged
    """int64: flat action indices of these tokens, parallel to ``predictors``."""
    trajectory: np.ndarray
    """int64[sequences]: index into ``trajectories.ids``."""
    temperature: np.ndarray
    """float32[action tokens]: T of each token in flat action order; 1 for greedy tokens."""
    action_lengths: np.ndarray
    """int64[rows]: action tokens of each table row."""
    trajectories: Trajectories

    @property
    def action_tokens(self) -> int:
        """Number of action tokens in the table."""
        return int(self.action_lengths.sum())

    @property
    def action_trajectory(self) -> np.ndarray:
        """int64[action tokens]: the trajectory of each token in flat action order."""
        return np.repeat(self.trajectories.of_row, self.action_lengths)

    @property
    def action_row(self) -> np.ndarray:
        """int64[action tokens]: the table row (the step) of each token in flat action order."""
        return np.repeat(np.arange(len(self.action_lengths)), self.action_lengths)

    def labels(self, of: Literal["trajectory", "step"]) -> np.ndarray:
        """int64[action tokens]: the trajectory, or the step, that each token belongs to."""
        return self.action_trajectory if of == "trajectory" else self.action_row


def build_sequences(rollouts: pd.DataFrame) -> Sequences:
    """The training sequences of a conformed rollouts table.

    Trajectories without an action token give no sequence.

    Raises:
        SchemaError: steps are missing or duplicate; an action has no visible token before it, or
            is outside its own window.
    """
    trajectories = find_trajectories(rollouts, "rollouts")
    order = trajectories.order
    contexts = _reorder(ragged(rollouts["context_token_ids"]), order)
    actions = _reorder(ragged(rollouts["action_token_ids"]), order)
    stream, stops = _interleave(contexts, actions)
    starts = stops - actions.lengths  # stream positions of each row's action
    row_begins = starts - contexts.lengths

    windows = _windows(rollouts, order)
    starts_segment = _differs(windows)
    starts_segment[trajectories.offsets[:-1]] = True
    rows = np.flatnonzero(starts_segment)  # the first row of each segment
    row_segment = np.cumsum(starts_segment) - 1
    owner = np.repeat(np.arange(len(trajectories.ids)), np.diff(trajectories.offsets))[rows]
    begin = row_begins[trajectories.offsets[:-1]][owner]
    end = np.maximum(_last_action_end(stops, actions.lengths, rows), begin)
    spans = Ragged(_ranges(begin, end), _offsets(end - begin))
    keep = _visible(spans, [windows[row] for row in rows])

    token_row = np.repeat(np.arange(len(order)), actions.lengths)
    within = np.arange(len(token_row)) - np.repeat(actions.offsets[:-1], actions.lengths)
    segment = row_segment[token_row]
    spot = spans.offsets[segment] + starts[token_row] + within - begin[segment]
    position, lengths = _positions(spans, keep, segment, spot)
    _check(keep[spot], position, token_row, order)

    scored = _offsets(np.bincount(segment, minlength=len(rows)))  # of each segment
    table_offsets = ragged(rollouts["action_token_ids"]).offsets
    sequences = Sequences(
        tokens=Ragged(stream[spans.values[keep]], _offsets(lengths)),
        predictors=Ragged(position - 1, scored),
        actions=Ragged(table_offsets[order][token_row] + within, scored),
        trajectory=owner,
        temperature=_temperatures(rollouts, np.diff(table_offsets)),
        action_lengths=np.diff(table_offsets),
        trajectories=trajectories,
    )
    return _without_empty(sequences)


def _reorder(column: Ragged, order: np.ndarray) -> Ragged:
    """The rows of ``column`` in another order, as int64."""
    lengths = column.lengths[order]
    begins = column.offsets[:-1][order]
    return Ragged(
        column.values[_ranges(begins, begins + lengths)].astype(np.int64), _offsets(lengths)
    )


def _interleave(contexts: Ragged, actions: Ragged) -> tuple[np.ndarray, np.ndarray]:
    """All streams as one array, and the end of each row in it."""
    stops = np.cumsum(contexts.lengths + actions.lengths)
    stream = np.empty(int(stops[-1]) if len(stops) else 0, np.int64)
    middle = stops - actions.lengths
    stream[_ranges(middle - contexts.lengths, middle)] = contexts.values
    stream[_ranges(middle, stops)] = actions.values
    return stream, stops


def _ranges(begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """``concatenate([arange(b, e) for b, e in zip(begins, ends)])`` without the loop."""
    lengths = ends - begins
    return np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _windows(rollouts: pd.DataFrame, order: np.ndarray) -> list[tuple[int, ...]]:
    """The hidden stream positions of each row as flat ``[begin, end)`` pairs; () hides nothing."""
    prefix = rollouts["context_prefix"].to_numpy(dtype=np.int64)[order]
    start = rollouts["context_start"].to_numpy(dtype=np.int64)[order]
    drops = _reorder(ragged(rollouts["context_drops"]), order)
    windows: list[tuple[int, ...]] = [()] * len(order)
    for row in np.flatnonzero((start > prefix) | (drops.lengths > 0)):
        gap = (int(prefix[row]), int(start[row])) if start[row] > prefix[row] else ()
        window = drops.values[drops.offsets[row] : drops.offsets[row + 1]].tolist()
        if len(window) % 2:
            raise SchemaError(
                f"table 'rollouts', row {order[row]}: context_drops must hold [begin, end) pairs"
            )
        windows[row] = (*gap, *window)
    return windows


def _differs(windows: list[tuple[int, ...]]) -> np.ndarray:
    """bool[rows]: the row's window differs from that of the previous row."""
    return np.array(
        [index == 0 or window != windows[index - 1] for index, window in enumerate(windows)], bool
    )


def _last_action_end(stops: np.ndarray, action_lengths: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The end of the last action of each segment; later tokens predict nothing."""
    ends = np.where(action_lengths > 0, stops, 0)
    return np.maximum.reduceat(ends, rows) if len(rows) else rows


def _visible(spans: Ragged, windows: list[tuple[int, ...]]) -> np.ndarray:
    """bool[tokens]: whether a token of a segment's stream is visible in its window."""
    keep = np.ones(len(spans.values), bool)
    for segment, window in enumerate(windows):
        part = keep[spans.offsets[segment] : spans.offsets[segment + 1]]
        for begin, end in zip(window[::2], window[1::2], strict=True):
            part[begin:end] = False
    return keep


def _positions(
    spans: Ragged, keep: np.ndarray, segment: np.ndarray, spot: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the action tokens in their sequences, and the length of every sequence."""
    kept = np.concatenate([[0], np.cumsum(keep)])  # visible tokens before each one
    before = kept[spans.offsets[:-1]]
    return kept[spot + 1] - 1 - before[segment], kept[spans.offsets[1:]] - before


def _check(visible: np.ndarray, position: np.ndarray, row: np.ndarray, order: np.ndarray) -> None:
    if not visible.all():
        bad = order[row[np.flatnonzero(~visible)[0]]]
        raise SchemaError(f"table 'rollouts', row {bad}: its window hides its own action")
    if (position < 1).any():
        bad = order[row[np.flatnonzero(position < 1)[0]]]
        raise SchemaError(f"table 'rollouts', row {bad}: an action has no context before it")


def _temperatures(rollouts: pd.DataFrame, action_lengths: np.ndarray) -> np.ndarray:
    """T per action token. Greedy tokens (T = 0) are scored at T = 1, as by the sampler."""
    temperature = rollouts["temperature"].to_numpy(dtype=np.float32)
    scored = (rollouts["action_type"] != ActionType.NONE.value).to_numpy(dtype=bool)
    if (temperature[scored] < 0).any():
        raise SchemaError("table 'rollouts': a temperature is negative")
    return np.repeat(np.where(temperature > 0, temperature, np.float32(1)), action_lengths)


def _without_empty(sequences: Sequences) -> Sequences:
    """Only the sequences with an action token."""
    full = np.flatnonzero(sequences.actions.lengths)
    if len(full) == len(sequences.trajectory):
        return sequences
    return Sequences(
        tokens=_reorder(sequences.tokens, full),
        predictors=_reorder(sequences.predictors, full),
        actions=_reorder(sequences.actions, full),
        trajectory=sequences.trajectory[full],
        temperature=sequences.temperature,
        action_lengths=sequences.action_lengths,
        trajectories=sequences.trajectories,
    )

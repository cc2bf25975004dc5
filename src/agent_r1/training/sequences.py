"""From rollouts to training sequences, without rendering or tokenising anything again.

1. The stream of a trajectory is context(0) + action(0) + context(1) + action(1) + …, exactly the
   ids that the policy saw and sampled.
2. Consecutive steps whose visible context extends the previous one (the window did not move) share
   **one** sequence: a causal forward over it scores all their actions at once.
3. Each action token is scored where it is predicted, one position before itself. A token of an
   earlier sequence that is still visible in a later one is context there: every action token is
   scored exactly once, under the context it was sampled in.

Lists per action token are indexed by *flat action order*: the rows of the table one after another,
the tokens of each row in order. That is the order of the flattened list columns.
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
    """int64 token ids of each sequence; it ends with an action token."""
    predictors: Ragged
    """int64 positions in the sequence that predict its action tokens."""
    actions: Ragged
    """int64 flat action indices of the same tokens, parallel to ``predictors``."""
    trajectory: np.ndarray
    """int64[sequences]: index into ``trajectories.ids``."""
    temperature: np.ndarray
    """float32[action tokens]: the T of each token in flat action order; greedy counts as 1."""
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
        """int64[action tokens]: which trajectory, or which step, each token is of."""
        return self.action_trajectory if of == "trajectory" else self.action_row


def build_sequences(rollouts: pd.DataFrame) -> Sequences:
    """The training sequences of a conformed rollouts table.

    Trajectories without an action token give no sequence.

    Raises:
        SchemaError: steps are missing or double; an action has no visible token before it, or
            lies outside of its own window.
    """
    trajectories = find_trajectories(rollouts, "rollouts")
    order = trajectories.order
    contexts = _reorder(ragged(rollouts["context_token_ids"]), order)
    actions = _reorder(ragged(rollouts["action_token_ids"]), order)
    stream, stops = _interleave(contexts, actions)
    starts = stops - actions.lengths  # stream positions of each row's action
    row_begins = starts - contexts.lengths

    windows = _windows(rollouts, order)
    first = np.zeros(len(order), bool)
    first[trajectories.offsets[:-1]] = True
    segment_first = first | _differs(windows)
    rows = np.flatnonzero(segment_first)  # the first row of each segment
    row_segment = np.cumsum(segment_first) - 1
    row_trajectory = np.repeat(np.arange(len(trajectories.ids)), np.diff(trajectories.offsets))
    stream_begin = row_begins[trajectories.offsets[:-1]][row_trajectory]
    last = np.append(rows[1:], len(order)) - 1
    begin, end = stream_begin[rows], _last_action_end(stops, actions.lengths, rows, last)
    end = np.maximum(end, begin)
    spans = Ragged(_ranges(begin, end), _offsets(end - begin))
    keep = _visible(spans, [windows[row] for row in rows])

    token_row = np.repeat(np.arange(len(order)), actions.lengths)
    within = np.arange(len(token_row)) - np.repeat(actions.offsets[:-1], actions.lengths)
    segment = row_segment[token_row]
    spot = spans.offsets[segment] + starts[token_row] + within - begin[segment]
    seen = np.cumsum(keep)
    before = np.concatenate([[0], seen])[spans.offsets[:-1]]
    position = seen[spot] - 1 - before[segment]
    _check(keep[spot], position, token_row, order)

    kept_lengths = np.concatenate([[0], seen])[spans.offsets[1:]] - before
    table_offsets = ragged(rollouts["action_token_ids"]).offsets
    sequences = Sequences(
        tokens=Ragged(stream[spans.values[keep]], _offsets(kept_lengths)),
        predictors=Ragged(position - 1, _offsets(np.bincount(segment, minlength=len(rows)))),
        actions=Ragged(
            table_offsets[order][token_row] + within,
            _offsets(np.bincount(segment, minlength=len(rows))),
        ),
        trajectory=row_trajectory[rows],
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
    """All streams as one array, and where each row ends in it."""
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
    """The hidden ``[begin, end)`` stream positions of each row, flat; () hides nothing."""
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
    """Whether each row's window differs from that of the row before."""
    return np.array(
        [index == 0 or window != windows[index - 1] for index, window in enumerate(windows)], bool
    )


def _last_action_end(
    stops: np.ndarray, action_lengths: np.ndarray, rows: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """Where the last action of each segment ends; what follows it predicts nothing."""
    ends = np.where(action_lengths > 0, stops, 0)
    return np.maximum.reduceat(ends, rows) if len(rows) else last


def _visible(spans: Ragged, windows: list[tuple[int, ...]]) -> np.ndarray:
    """bool[tokens]: what each segment's window leaves of its stream."""
    keep = np.ones(len(spans.values), bool)
    for segment, window in enumerate(windows):
        part = keep[spans.offsets[segment] : spans.offsets[segment + 1]]
        for begin, end in zip(window[::2], window[1::2], strict=True):
            part[begin:end] = False
    return keep


def _check(visible: np.ndarray, position: np.ndarray, row: np.ndarray, order: np.ndarray) -> None:
    if not visible.all():
        bad = order[row[np.flatnonzero(~visible)[0]]]
        raise SchemaError(f"table 'rollouts', row {bad}: its window hides its own action")
    if (position < 1).any():
        bad = order[row[np.flatnonzero(position < 1)[0]]]
        raise SchemaError(f"table 'rollouts', row {bad}: an action has no context before it")


def _temperatures(rollouts: pd.DataFrame, action_lengths: np.ndarray) -> np.ndarray:
    """T per action token. Greedy (0) is scored at 1, as the sampler does."""
    temperature = rollouts["temperature"].to_numpy(dtype=np.float32)
    scored = (rollouts["action_type"] != ActionType.NONE.value).to_numpy(dtype=bool)
    if (temperature[scored] < 0).any():
        raise SchemaError("table 'rollouts': a temperature is negative")
    return np.repeat(np.where(temperature > 0, temperature, np.float32(1)), action_lengths)


def _without_empty(sequences: Sequences) -> Sequences:
    """Only the sequences that hold an action token."""
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

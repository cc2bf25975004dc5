"""What the critic says of sampled trajectories: the columns ``values`` and ``bootstrap_value``.

A truncated trajectory stopped in a state: all that was visible at its last action, that action, and
what was appended after it (``final_token_ids``), under the window of its last step. The window is
not moved for it, and what no later action would see of the last one is still there. V of that state
is read where it ends, as V of every state is: at the position that would predict the first token of
the next action. So each truncated trajectory gets one more step whose action is a token that no one
sees, in the same sequence as its other steps: all values come from one forward pass.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from transformers import PreTrainedModel

from agent_r1.tables.arrays import Ragged, ragged
from agent_r1.tables.trajectories import find_trajectories
from agent_r1.training.batching import micro_batches
from agent_r1.training.critic import Critic
from agent_r1.training.sequences import Sequences, build_sequences

_NEVER_SEEN = 0
"""Any valid id: the last token of a sequence is only ever predicted."""


@torch.no_grad()
def token_values(
    critic: Critic, policy: PreTrainedModel, sequences: Sequences, micro_batch_sequences: int = 32
) -> np.ndarray:
    """float32[action tokens], units of the return: V where each action token is predicted, in flat
    action order. ``policy`` lends its decoder to a critic without a backbone."""
    result = np.zeros(sequences.action_tokens, np.float32)
    everything = np.arange(len(sequences.trajectory))
    for batch in micro_batches(sequences, everything, micro_batch_sequences):
        values_N = critic(critic.states(policy, batch))
        result[batch.actions_N.numpy()] = values_N.float().cpu().numpy()
    return result


def value_columns(
    rollouts: pd.DataFrame,
    critic: Critic | None,
    policy: PreTrainedModel,
    micro_batch_sequences: int = 32,
) -> dict[str, pa.Array]:
    """``values`` and ``bootstrap_value`` of conformed ``rollouts``, in their row order.

    ``bootstrap_value`` is null but on the last row of a truncated trajectory, and there too if the
    trajectory has no token at all: there is no state that could be read.

    Args:
        rollouts: conformed.
        critic: None is the one that has learnt nothing: 0 everywhere.
        policy: the one that acted.
        micro_batch_sequences: sequences per forward; speed and memory only.
    """
    offsets = ragged(rollouts["action_token_ids"]).offsets
    rows = _stopped_rows(rollouts)
    if critic is None:
        flat = np.zeros(offsets[-1] + len(rows), np.float32)
    else:
        longer = _with_one_more_step(rollouts, rows)
        flat = token_values(critic, policy, build_sequences(longer), micro_batch_sequences)
    bootstrap, missing = np.zeros(len(rollouts), np.float32), np.ones(len(rollouts), bool)
    bootstrap[rows], missing[rows] = flat[offsets[-1] :], False
    return {
        "values": Ragged(flat[: offsets[-1]], offsets).to_arrow(pa.float32()),
        "bootstrap_value": pa.array(bootstrap, mask=missing),
    }


def _stopped_rows(rollouts: pd.DataFrame) -> np.ndarray:
    """int64: the last rows of truncated trajectories that have a token."""
    trajectories = find_trajectories(rollouts, "rollouts")
    tokens = np.zeros(len(trajectories.ids), np.int64)
    for column in ("context_token_ids", "action_token_ids", "final_token_ids"):
        np.add.at(tokens, trajectories.of_row, ragged(rollouts[column]).lengths)
    last = trajectories.last_rows
    truncated = rollouts["truncated"].to_numpy(dtype=bool)[last]
    truncated &= ~rollouts["terminated"].to_numpy(dtype=bool)[last]
    return last[truncated & (tokens > 0)]


def _with_one_more_step(rollouts: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """``rollouts``, and below them a step after each of the ``rows``: context
    ``final_token_ids``, an action of one token."""
    last = rollouts.take(rows)
    finals = ragged(last["final_token_ids"])
    actions = Ragged(np.full(len(rows), _NEVER_SEEN, np.int32), np.arange(len(rows) + 1))
    columns = {
        "step_index": pa.array(last["step_index"].to_numpy(dtype=np.int32) + 1, pa.int32()),
        "context_token_ids": finals.to_arrow(pa.int32()),
        "action_token_ids": actions.to_arrow(pa.int32()),
    }
    after = last.reset_index(drop=True).assign(
        **{name: pd.arrays.ArrowExtensionArray(column) for name, column in columns.items()}
    )
    return pd.concat([rollouts, after], ignore_index=True)

"""The critic's values of sampled trajectories: the columns ``values`` and ``bootstrap_value``.

The state where a truncated trajectory stopped consists of the tokens visible at its last action,
that action, and the tokens appended after it (``final_token_ids``). The window of the last step
applies and does not move, even if a next action would no longer see all of these tokens.

V of this state is read at its end, like every V: at the position that would predict the first token
of the next action. So each truncated trajectory gets one more step, whose action is a single token
that is never an input, in the same sequence as the last step. All values come from one forward
pass.
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
"""Any valid id: the last token of a sequence is only a target, never an input."""


@torch.no_grad()
def token_values(
    critic: Critic, policy: PreTrainedModel, sequences: Sequences, micro_batch_sequences: int = 32
) -> np.ndarray:
    """float32[action tokens]: V at the position that predicts each token, in flat action order.

    Values are in units of the return. A critic without a backbone uses the decoder of ``policy``.
    """
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

    ``bootstrap_value`` is null except on the last row of a truncated trajectory. It is also null
    there if the trajectory has no token, because then there is no state to read.

    Args:
        rollouts: conformed.
        critic: None is an untrained critic, whose values are 0.
        policy: the policy that acted.
        micro_batch_sequences: sequences per forward pass; affects speed and memory only.
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
    """int64: the last rows of truncated trajectories with at least one token."""
    trajectories = find_trajectories(rollouts, "rollouts")
    tokens = np.zeros(len(trajectories.ids), np.int64)
    for column in ("context_token_ids", "action_token_ids", "final_token_ids"):
        np.add.at(tokens, trajectories.of_row, ragged(rollouts[column]).lengths)
    last = trajectories.last_rows
    truncated = rollouts["truncated"].to_numpy(dtype=bool)[last]
    truncated &= ~rollouts["terminated"].to_numpy(dtype=bool)[last]
    return last[truncated & (tokens > 0)]


def _with_one_more_step(rollouts: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """``rollouts`` with one more step for each of ``rows``, appended at the end.

    Its context is ``final_token_ids``, its action one token.
    """
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

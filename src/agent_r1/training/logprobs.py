"""Log-probs of action tokens under a policy: exact, and without keeping a vocabulary per token.

1. The decoder runs over a block of sequences (`agent_r1.training.batching`).
2. Its hidden states are selected where action tokens are predicted; only those meet the LM head.
   (`head_of` proves on a few tokens that this equals the model's own logits; a model that scales
   or caps them is run in full instead.)
3. Chunk by chunk: ``log_softmax(logits / T)`` of the taken token in fp32 (a model in fp64 stays
   there). With gradients a chunk is recomputed in the backward pass, so that at most one chunk of
   logits is alive at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from pydantic import Field
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from agent_r1 import tables
from agent_r1.parameters import Parameters
from agent_r1.storage.hashing import folder_sha256
from agent_r1.tables.arrays import Ragged
from agent_r1.training.batching import MicroBatch, micro_batches
from agent_r1.training.critic import load_critic
from agent_r1.training.policy import ModelParameters, load_policy
from agent_r1.training.sequences import Sequences, build_sequences
from agent_r1.training.values import value_columns

LOGITS_PER_CHUNK = 1 << 23
"""Logits alive at a time: 32 MiB in fp32."""


class LogprobParameters(Parameters):
    """``logprobs`` in ``conf/``: how the trainer scores the sampled tokens."""

    micro_batch_sequences: int = Field(32, ge=1)
    """Sequences per forward; speed and memory only."""
    reference: bool = True
    """Score the reference policy too; the KL needs it."""
    values: bool = False
    """Let the critic say V of every sampled token and of the states in which trajectories were
    truncated; an estimator with a critic needs it."""


class TokenScores(NamedTuple):
    """What a forward says about N action tokens."""

    logprobs_N: torch.Tensor
    """float32 nats, of log_softmax(logits / T)."""
    entropy_N: torch.Tensor | None
    """float32 nats, of softmax(logits / T); None unless asked for."""
    states_N_D: torch.Tensor | None = None
    """The decoder's last hidden states where the tokens are predicted; None unless asked for."""


Entropy = Literal["none", "value", "gradient"]
Head = Callable[[torch.Tensor], torch.Tensor]


def head_of(model: PreTrainedModel) -> Head | None:
    """The map from the decoder's hidden states to the model's logits, or None if it is not just
    the output embedding (the model scales, caps or shifts its logits)."""
    head, decoder = model.get_output_embeddings(), model.base_model
    if head is None or decoder is model:
        return None
    probe = torch.arange(4, device=model.device)[None] % model.config.get_text_config().vocab_size
    with torch.no_grad():
        hidden = decoder(input_ids=probe, use_cache=False).last_hidden_state
        same = torch.allclose(
            head(hidden).float(),
            model(input_ids=probe, use_cache=False).logits.float(),
            rtol=1e-5,
            atol=1e-6,
        )
    return head if same else None


def score(
    model: PreTrainedModel,
    head: Head | None,
    batch: MicroBatch,
    temperature_N: torch.Tensor,
    entropy: Entropy = "none",
    with_states: bool = False,
) -> TokenScores:
    """Log-probs (and entropies) of a micro-batch's action tokens; differentiable.

    Args:
        model: any causal language model of transformers.
        head: of `head_of(model)`.
        batch: N scored tokens in B sequences of at most L tokens.
        temperature_N: float32 T per scored token.
        entropy: whether the entropy is wanted, and whether its gradient is.
        with_states: whether the hidden states are wanted, for a value head on them.
    """
    inputs, kept_N_D = batch.model_inputs(model.device), None
    if head is None:
        more = {"output_hidden_states": True} if with_states else {}
        output = model(**inputs, **more)
        states_N_D = batch.where_predicted(output.logits)
        if with_states:
            kept_N_D = batch.where_predicted(output.hidden_states[-1])
    else:
        states_B_L_D = model.base_model(**inputs).last_hidden_state
        states_N_D = batch.where_predicted(states_B_L_D)
        kept_N_D = states_N_D if with_states else None
    targets_N = batch.targets_N.to(model.device)
    temperature_N = temperature_N.to(model.device)

    vocabulary = model.config.get_text_config().vocab_size
    size = max(1, LOGITS_PER_CHUNK // vocabulary)
    recompute = torch.is_grad_enabled() and len(targets_N) > size
    parts = []
    for begin in range(0, len(targets_N), size):
        part = slice(begin, begin + size)
        inputs = (head, states_N_D[part], targets_N[part], temperature_N[part], entropy)
        parts.append(
            checkpoint(_chunk_scores, *inputs, use_reentrant=False)
            if recompute
            else _chunk_scores(*inputs)
        )
    logprobs = torch.cat([part[0] for part in parts])
    if entropy == "none":
        return TokenScores(logprobs, None, kept_N_D)
    return TokenScores(logprobs, torch.cat([part[1] for part in parts]), kept_N_D)


def _chunk_scores(
    head: Head | None,
    states_N_D: torch.Tensor,
    targets_N: torch.Tensor,
    temperature_N: torch.Tensor,
    entropy: Entropy,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    logits_N_V = states_N_D if head is None else head(states_N_D)
    # fp32 at least: in bfloat16 a log-sum-exp has two digits.
    logits_N_V = logits_N_V.to(torch.promote_types(logits_N_V.dtype, torch.float32))
    logits_N_V = logits_N_V / temperature_N[:, None]
    normaliser_N = logits_N_V.logsumexp(-1)
    logprobs_N = logits_N_V.gather(-1, targets_N[:, None]).squeeze(-1) - normaliser_N
    if entropy == "none":
        return logprobs_N, None
    with torch.set_grad_enabled(entropy == "gradient" and torch.is_grad_enabled()):
        probabilities_N_V = (logits_N_V - normaliser_N[:, None]).exp()
        return logprobs_N, normaliser_N - (probabilities_N_V * logits_N_V).sum(-1)


@torch.no_grad()
def token_logprobs(
    model: PreTrainedModel, sequences: Sequences, micro_batch_sequences: int = 32
) -> np.ndarray:
    """float32[action tokens]: nats of every action token in flat action order, at its row's T."""
    result = np.zeros(sequences.action_tokens, np.float32)
    temperature = torch.from_numpy(sequences.temperature)
    head = head_of(model)
    everything = np.arange(len(sequences.trajectory))
    for batch in micro_batches(sequences, everything, micro_batch_sequences):
        scores = score(model, head, batch, temperature[batch.actions_N])
        result[batch.actions_N.numpy()] = scores.logprobs_N.cpu().numpy()
    return result


def logprobs_table(
    rollouts: pd.DataFrame,
    policy: Path,
    reference: Path,
    critic: Path,
    parameters: LogprobParameters,
    model: ModelParameters,
) -> pd.DataFrame:
    """The ``logprobs`` table of conformed ``rollouts``, in their row order.

    A reference that is the policy itself (equal hashes) is not run: its log-probs are the
    policy's, so that their KL is exactly 0. The critic is read if values are wanted; V is 0
    everywhere if its folder is the empty checkpoint.

    Raises:
        CriticError: the folder holds no critic, or one of another policy.
    """
    sequences = build_sequences(rollouts)
    size = parameters.micro_batch_sequences
    actor = load_policy(policy, model.torch_dtype)
    ours = token_logprobs(actor, sequences, size)
    theirs = None
    if parameters.reference:
        same = folder_sha256(reference) == folder_sha256(policy)
        theirs = (
            ours
            if same
            else token_logprobs(load_policy(reference, model.torch_dtype), sequences, size)
        )
    offsets = tables.ragged(rollouts["action_token_ids"]).offsets
    columns = {
        "trajectory_id": rollouts["trajectory_id"].array.__arrow_array__(),
        "step_index": rollouts["step_index"].array.__arrow_array__(),
        "policy_logprobs": Ragged(ours, offsets).to_arrow(pa.float32()),
    }
    if theirs is not None:
        columns["reference_logprobs"] = Ragged(theirs, offsets).to_arrow(pa.float32())
    if parameters.values:
        critic_model = load_critic(critic, actor, model.torch_dtype)
        columns |= value_columns(rollouts, critic_model, actor, size)
    return tables.build(columns, "logprobs")

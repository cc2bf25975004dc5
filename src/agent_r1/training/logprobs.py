"""Exact log-probs of action tokens under a policy, without storing logits for every token.

1. The decoder runs over a block of sequences (`agent_r1.training.batching`).
2. The LM head runs only on the hidden states that predict action tokens. `head_of` checks on a few
   tokens that this equals the model's own logits; a model that scales or caps its logits is run in
   full instead.
3. ``log_softmax(logits / T)`` of the taken token is computed chunk by chunk in fp32 (in fp64 for a
   model in fp64). With gradients, a chunk is recomputed in the backward pass, so at most one chunk
   of logits is in memory.
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
"""Logits in memory at a time: 32 MiB in fp32."""


class LogprobParameters(Parameters):
    """``logprobs`` in ``conf/``: how the trainer computes the log-probs of sampled tokens."""

    micro_batch_sequences: int = Field(32, ge=1)
    """Sequences per forward pass; affects speed and memory only."""
    reference: bool = True
    """Also compute log-probs of the reference policy; a KL needs them."""
    values: bool = False
    """Compute the critic's value for every sampled token and for the states where trajectories were
    truncated. Estimators with a critic need this."""


class TokenScores(NamedTuple):
    """The results of a forward pass for N action tokens."""

    logprobs_N: torch.Tensor
    """float32 nats: log_softmax(logits / T)."""
    entropy_N: torch.Tensor | None
    """float32 nats: entropy of softmax(logits / T); None unless requested."""
    states_N_D: torch.Tensor | None = None
    """The decoder's last hidden states that predict the tokens; None unless requested."""


Entropy = Literal["none", "value", "gradient"]
Head = Callable[[torch.Tensor], torch.Tensor]


def head_of(model: PreTrainedModel) -> Head | None:
    """The map from the decoder's hidden states to the model's logits.

    None if it is more than the output embedding: the model scales, caps or shifts its logits.
    """
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
        head: `head_of(model)`.
        batch: N scored tokens in B sequences of at most L tokens.
        temperature_N: float32: T of each scored token.
        entropy: return no entropy, its value, or its value with a gradient.
        with_states: also return the hidden states, for a value head.
    """
    states_N_D, kept_N_D = _states(model, head, batch, with_states)
    targets_N = batch.targets_N.to(model.device)
    temperature_N = temperature_N.to(model.device)

    vocabulary = model.config.get_text_config().vocab_size
    size = max(1, LOGITS_PER_CHUNK // vocabulary)
    recompute = torch.is_grad_enabled() and len(targets_N) > size
    parts = []
    for begin in range(0, len(targets_N), size):
        part = slice(begin, begin + size)
        chunk = (head, states_N_D[part], targets_N[part], temperature_N[part], entropy)
        parts.append(
            checkpoint(_chunk_scores, *chunk, use_reentrant=False)
            if recompute
            else _chunk_scores(*chunk)
        )
    logprobs_N = torch.cat([logprobs for logprobs, _ in parts])
    entropies = [entropy_n for _, entropy_n in parts if entropy_n is not None]
    return TokenScores(logprobs_N, torch.cat(entropies) if entropies else None, kept_N_D)


def _states(
    model: PreTrainedModel, head: Head | None, batch: MicroBatch, with_states: bool
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What ``head`` maps to logits (the logits themselves without one), and the hidden states."""
    inputs = batch.model_inputs(model.device)
    if head is not None:
        states_N_D = batch.where_predicted(model.base_model(**inputs).last_hidden_state)
        return states_N_D, states_N_D if with_states else None
    more = {"output_hidden_states": True} if with_states else {}
    output = model(**inputs, **more)
    logits_N_V = batch.where_predicted(output.logits)
    return logits_N_V, batch.where_predicted(output.hidden_states[-1]) if with_states else None


def _chunk_scores(
    head: Head | None,
    states_N_D: torch.Tensor,
    targets_N: torch.Tensor,
    temperature_N: torch.Tensor,
    entropy: Entropy,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    logits_N_V = states_N_D if head is None else head(states_N_D)
    # At least fp32: a log-sum-exp in bfloat16 has about two digits.
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
    """float32[action tokens]: log-probs in nats, in flat action order, each at its row's T."""
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

    If the reference is the policy itself (equal hashes), it is not run: the policy's log-probs are
    used, so the KL is exactly 0. The critic is loaded only for ``values``; V is 0 if its folder is
    the empty checkpoint.

    Args:
        rollouts: conformed.
        policy: folder of the policy that acted.
        reference: folder of the reference policy.
        critic: folder of the critic.
        parameters: what to compute, and the batch size.
        model: dtype of the weights.

    Raises:
        CriticError: the folder holds no critic, or the critic of another policy.
    """
    sequences, dtype = build_sequences(rollouts), model.torch_dtype
    size = parameters.micro_batch_sequences
    actor = load_policy(policy, dtype)
    ours = token_logprobs(actor, sequences, size)
    offsets = tables.ragged(rollouts["action_token_ids"]).offsets
    columns = {
        "trajectory_id": rollouts["trajectory_id"].array.__arrow_array__(),
        "step_index": rollouts["step_index"].array.__arrow_array__(),
        "policy_logprobs": Ragged(ours, offsets).to_arrow(pa.float32()),
    }
    if parameters.reference:
        same = folder_sha256(reference) == folder_sha256(policy)
        theirs = ours if same else token_logprobs(load_policy(reference, dtype), sequences, size)
        columns["reference_logprobs"] = Ragged(theirs, offsets).to_arrow(pa.float32())
    if parameters.values:
        critic_model = load_critic(critic, actor, dtype)
        columns |= value_columns(rollouts, critic_model, actor, size)
    return tables.build(columns, "logprobs")

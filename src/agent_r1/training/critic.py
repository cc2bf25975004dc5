"""The critic: a linear head that computes V(s) from hidden states.

1. The head reads its own backbone (``own``; initially a copy of the policy's decoder) or the hidden
   states of the policy (``shared``).
2. V is read at the position that predicts an action token, from the tokens visible there. The first
   token of an action is predicted at the end of the state, so V there is V(s_t).
3. A new head is 0, so an untrained critic gives V = 0 exactly; so does the empty folder.
4. On disk a critic is a folder of safetensors and JSON with all that the next update needs:
   ``critic.json`` (the kind of backbone, the number of updates), ``value_head.safetensors``, an own
   backbone as a Hugging Face folder, and the optimizer's state (`agent_r1.training.optimizer`).
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoModel, PreTrainedModel

from agent_r1.errors import UserError
from agent_r1.parameters import Parameters
from agent_r1.storage.atomic import named_in_errors
from agent_r1.training.batching import MicroBatch
from agent_r1.training.optimizer import (
    OptimizerParameters,
    is_empty,
    make_optimizer,
    restore_state,
    save_state,
)
from agent_r1.training.policy import refuse_pickles

_ABOUT, _HEAD = "critic.json", "value_head.safetensors"


class CriticError(UserError, ValueError):
    """A folder holds no critic, or not the configured kind; the message says what to do."""


class CriticParameters(Parameters):
    """``update.critic`` in ``conf/``. The other AdamW parameters and the gradient clip are those of
    ``update``."""

    backbone: Literal["none", "own", "shared"] = "none"
    """none: no critic. own: a second model, as large as the policy. shared: a head on the policy,
    whose weights are then trained by both losses."""
    learning_rate: float = Field(1e-3, gt=0)
    """Learning rate of backbone and head; with ``shared``, of the head only."""
    epochs: int = Field(1, ge=1)
    """Passes over the iteration's trajectories when the critic is trained separately: with ``own``,
    and during the warm-up."""
    value_clip: float | None = Field(None, gt=0)
    """Largest change of a value in one update, in units of the return; beyond it the gradient is
    clipped. null: no clip."""
    value_coef: float = Field(0.1, gt=0)
    """For ``shared``: weight of the value loss, added to the policy's. An own backbone has no other
    loss."""
    warmup_iterations: int = Field(0, ge=0)
    """The first updates of the critic, in which the policy is not trained."""


class Critic(nn.Module):
    """The value head, and its own backbone if it has one."""

    def __init__(self, backbone: PreTrainedModel | None, policy: PreTrainedModel) -> None:
        """A head of zeros, as wide as the hidden states of ``policy`` and on its device.

        Raises:
            CriticError: the policy has no separate decoder with hidden states.
        """
        super().__init__()
        decoder_of(policy)
        self.backbone = backbone
        # At least fp32: bfloat16 has about two digits.
        dtype = torch.promote_types(policy.dtype, torch.float32)
        width = policy.config.get_text_config().hidden_size
        # skip_init: initialising would draw from the global random state.
        self.head = nn.utils.skip_init(nn.Linear, width, 1, dtype=dtype, device=policy.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, states_N_D: torch.Tensor) -> torch.Tensor:
        """float[N]: the values of N hidden states, in units of the return."""
        return self.head(states_N_D.to(self.head.weight.dtype)).squeeze(-1)

    def states(self, policy: PreTrainedModel, batch: MicroBatch) -> torch.Tensor:
        """[N, D]: the hidden states of a micro-batch's scored tokens.

        A shared critic uses the decoder of ``policy``, without a gradient.
        """
        inputs = batch.model_inputs(policy.device)
        if self.backbone is not None:
            return batch.where_predicted(self.backbone(**inputs).last_hidden_state)
        with torch.no_grad():
            hidden = policy.base_model(**inputs).last_hidden_state
        return batch.where_predicted(hidden)


def decoder_of(policy: PreTrainedModel) -> PreTrainedModel:
    """The part of ``policy`` whose hidden states a value head can read.

    Raises:
        CriticError: the policy has no separate decoder.
    """
    decoder = policy.base_model
    if decoder is policy or not isinstance(decoder, PreTrainedModel):
        raise CriticError(f"{type(policy).__name__} has no decoder that a value head can read")
    return decoder


@dataclass
class CriticState:
    """A critic in training."""

    critic: Critic
    optimizer: torch.optim.Optimizer
    steps: int = 0
    """Optimizer steps taken."""
    updates: int = 0
    """Updates that have trained it."""


def load_critic(folder: Path, policy: PreTrainedModel, dtype: torch.dtype) -> Critic | None:
    """The critic in a folder; None for the empty checkpoint.

    Args:
        folder: written by `save_critic`.
        policy: the policy of the same iteration; a shared critic reads its hidden states.
        dtype: dtype of the backbone's weights.

    Raises:
        CriticError: the folder holds no critic, or the critic of another policy.
        ModelFolderError: the folder holds pickles.
    """
    if is_empty(folder):
        return None
    backbone = None
    if _about(folder)["backbone"] == "own":
        backbone = AutoModel.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, local_files_only=True
        )
        backbone = backbone.eval().to(policy.device)
    critic = Critic(backbone, policy)
    try:
        critic.head.load_state_dict(load_file(Path(folder) / _HEAD))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise CriticError(
            f"the value head in '{folder}' does not fit the policy: {error}"
        ) from None
    return critic


def restore_critic(
    folder: Path,
    policy: PreTrainedModel,
    parameters: CriticParameters,
    adamw: OptimizerParameters,
    dtype: torch.dtype,
) -> CriticState:
    """The previous critic with its optimizer, or a new one if the folder is empty.

    Args:
        folder: the previous critic.
        policy: the policy before the update.
        parameters: ``backbone`` must not be ``none``.
        adamw: the critic's AdamW.
        dtype: dtype of the backbone's weights.

    Raises:
        CriticError: the critic is not of the configured kind; see also `load_critic`.
    """
    critic = load_critic(folder, policy, dtype)
    if critic is None:
        own = parameters.backbone == "own"
        critic = Critic(deepcopy(decoder_of(policy)) if own else None, policy)
        return CriticState(critic, make_optimizer(critic, adamw))
    about = _about(folder)
    if about["backbone"] != parameters.backbone:
        raise CriticError(
            f"the critic in '{folder}' was trained with update.critic.backbone: "
            f"{about['backbone']}, but now it is {parameters.backbone}: set it back, or start an "
            "experiment from a policy without a critic"
        )
    optimizer = make_optimizer(critic, adamw)
    steps = restore_state(critic, optimizer, folder)
    return CriticState(critic, optimizer, steps, about["updates"])


def save_critic(state: CriticState, folder: Path) -> Path:
    """Write the critic and its optimizer; equal states give equal bytes.

    Raises:
        OSError: the folder cannot be written; the message names it.
    """
    critic = state.critic
    kind = "own" if critic.backbone is not None else "shared"
    about = {"backbone": kind, "updates": state.updates}
    with named_in_errors(folder):
        if critic.backbone is not None:
            critic.backbone.save_pretrained(folder)
        head = {name: x.detach().cpu() for name, x in critic.head.state_dict().items()}
        save_file(head, folder / _HEAD)
        (folder / _ABOUT).write_text(json.dumps(about, sort_keys=True) + "\n")
    return save_state(critic, state.optimizer, state.steps, folder)


def _about(folder: Path) -> dict[str, Any]:
    """The content of ``critic.json``.

    Raises:
        CriticError: the file does not exist.
    """
    file = refuse_pickles(Path(folder)) / _ABOUT
    if not file.is_file():
        raise CriticError(f"'{folder}' is not a critic: it holds neither {_ABOUT} nor empty.json")
    return json.loads(file.read_text())

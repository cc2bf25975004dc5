"""The critic: V(s), read off hidden states by a linear head.

1. The head stands on a backbone of its own (``own``: when it begins, a copy of the policy's
   decoder) or on the hidden states of the policy itself (``shared``).
2. V is read at the position that predicts an action token, from all that is visible there and
   nothing else: the first token of an action is predicted where the state ends, so V there is
   V(s_t).
3. A new head is 0, so a critic that has learnt nothing says exactly 0; so does the empty folder.
4. On disk it is a folder of safetensors and JSON: ``critic.json`` (which backbone, updates so far),
   ``value_head.safetensors``, the backbone as a Hugging Face folder if it has one, and the state of
   its optimizer (`agent_r1.training.optimizer`). All that the next update needs is in it.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
    """A folder is no critic, or not the one that is configured; the message says what to do."""


class CriticParameters(Parameters):
    """``update.critic`` in ``conf/``. What AdamW needs beyond the learning rate, and the clip of
    the gradient's norm, is what ``update`` says."""

    backbone: Literal["none", "own", "shared"] = "none"
    """none: there is no critic. own: a second model as large as the policy. shared: a head on the
    policy, whose weights then follow both losses."""
    learning_rate: float = Field(1e-3, gt=0)
    """Of the backbone and the head; with ``shared`` of the head alone."""
    epochs: int = Field(1, ge=1)
    """Passes over the iteration's trajectories where the critic is trained alone: with ``own``, and
    in the warm-up."""
    value_clip: float | None = Field(None, gt=0)
    """A value gets no gradient that carries it further than this from where it was before the
    update, in units of the return; null: no bound."""
    value_coef: float = Field(0.1, gt=0)
    """Weight of the value loss beside the policy's; ``shared`` alone, an own backbone has no other
    loss."""
    warmup_iterations: int = Field(0, ge=0)
    """Updates in which only the critic learns, counted from its first."""


class Critic(nn.Module):
    """The value head, and its backbone if it has one."""

    def __init__(self, backbone: PreTrainedModel | None, policy: PreTrainedModel) -> None:
        """A head that says 0, as wide as the hidden states of ``policy`` and on its device.

        Raises:
            CriticError: the policy has no decoder whose hidden states could be read.
        """
        super().__init__()
        if policy.base_model is policy:
            raise CriticError(f"{type(policy).__name__} has no decoder that a value head can read")
        self.backbone = backbone
        # fp32 at least: a value in bfloat16 has two digits.
        dtype = torch.promote_types(policy.dtype, torch.float32)
        width = policy.config.get_text_config().hidden_size
        # Not initialised: that would draw from the global random state.
        self.head = nn.utils.skip_init(nn.Linear, width, 1, dtype=dtype, device=policy.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, states_N_D: torch.Tensor) -> torch.Tensor:
        """float[N], units of the return: the values of N hidden states."""
        return self.head(states_N_D.to(self.head.weight.dtype)).squeeze(-1)

    def states(self, policy: PreTrainedModel, batch: MicroBatch) -> torch.Tensor:
        """[N, D]: what the head reads for a micro-batch's tokens. No gradient reaches ``policy``,
        which a shared critic borrows the decoder of."""
        inputs = batch.model_inputs(policy.device)
        if self.backbone is not None:
            return batch.where_predicted(self.backbone(**inputs).last_hidden_state)
        with torch.no_grad():
            hidden = policy.base_model(**inputs).last_hidden_state
        return batch.where_predicted(hidden)


@dataclass
class CriticState:
    """A critic while it is trained."""

    critic: Critic
    optimizer: torch.optim.Optimizer
    steps: int = 0
    """Optimizer steps taken."""
    updates: int = 0
    """Updates that trained it."""


def load_critic(folder: Path, policy: PreTrainedModel, dtype: torch.dtype) -> Critic | None:
    """The critic in a folder, None if that is the empty checkpoint.

    Args:
        folder: of `save_critic`.
        policy: of the same iteration; a shared critic reads its hidden states.
        dtype: of the backbone's weights.

    Raises:
        CriticError: the folder holds no critic, or the one of another policy.
        ModelFolderError: it holds pickles.
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
    """The critic of the last update with its optimizer, or a new one if the folder is empty.

    Args:
        folder: the previous critic.
        policy: the one that the update starts from.
        parameters: its ``backbone`` is not ``none``.
        adamw: of the critic.
        dtype: of the backbone's weights.

    Raises:
        CriticError: the critic is not of the kind that is configured; see also `load_critic`.
    """
    critic = load_critic(folder, policy, dtype)
    if critic is None:
        own = parameters.backbone == "own"
        critic = Critic(deepcopy(policy.base_model) if own else None, policy)
        return CriticState(critic, make_optimizer(critic, adamw))
    about = _about(folder)
    if about["backbone"] != parameters.backbone:
        raise CriticError(
            f"the critic in '{folder}' was trained with update.critic.backbone: "
            f"{about['backbone']}, now it is {parameters.backbone}: set it back, or start an "
            "experiment from a policy without a critic"
        )
    optimizer = make_optimizer(critic, adamw)
    steps = restore_state(critic, optimizer, folder)
    return CriticState(critic, optimizer, steps, about["updates"])


def save_critic(state: CriticState, folder: Path) -> Path:
    """Write the critic with its optimizer; equal states give equal bytes.

    Raises:
        OSError: the folder cannot be written; it is named.
    """
    critic = state.critic
    about = {"backbone": "own" if critic.backbone is not None else "shared"}
    about["updates"] = state.updates
    with named_in_errors(folder):
        if critic.backbone is not None:
            critic.backbone.save_pretrained(folder)
        head = {name: x.detach().cpu() for name, x in critic.head.state_dict().items()}
        save_file(head, folder / _HEAD)
        (folder / _ABOUT).write_text(json.dumps(about, sort_keys=True) + "\n")
    return save_state(critic, state.optimizer, state.steps, folder)


def _about(folder: Path) -> dict:
    """What ``critic.json`` says.

    Raises:
        CriticError: there is none.
    """
    file = refuse_pickles(Path(folder)) / _ABOUT
    if not file.is_file():
        raise CriticError(f"'{folder}' holds no {_ABOUT} and no empty.json: it is no critic")
    return json.loads(file.read_text())

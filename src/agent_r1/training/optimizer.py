"""AdamW and its state on disk: safetensors and JSON, restored bit for bit.

A trainer state is a folder with ``optimizer.safetensors`` (``exp_avg/<parameter>``,
``exp_avg_sq/<parameter>``) and ``trainer_state.json`` (optimizer steps taken). A folder with
``empty.json`` alone is the state before the first step. ``gradients.safetensors`` beside them is no
state, but there to be looked at.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from agent_r1.errors import UserError
from agent_r1.parameters import Parameters
from agent_r1.storage.atomic import named_in_errors

_EMPTY, _STATE, _MOMENTS = "empty.json", "trainer_state.json", "optimizer.safetensors"
GRADIENTS = "gradients.safetensors"
"""Of the first optimizer step of an update, by parameter; only where they are asked for."""
MOMENTS = ("exp_avg", "exp_avg_sq")
"""What AdamW keeps of each parameter."""


Decay = Annotated[float, Field(ge=0, lt=1)]
"""What a moment keeps of itself at each step."""


class TrainerStateError(UserError, ValueError):
    """A trainer state does not fit the model that it is restored to."""


class OptimizerParameters(Parameters):
    """The AdamW part of ``sft`` and ``update`` in ``conf/``."""

    learning_rate: float = Field(3e-4, gt=0)
    """Step size after the warm-up."""
    warmup_steps: int = Field(0, ge=0)
    """Optimizer steps over which the learning rate rises linearly from 0."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of AdamW's first and second moment."""
    eps: float = Field(1e-8, gt=0)
    """Added to the root of the second moment: a weight whose gradient is far smaller than this is
    hardly moved. AdamW would otherwise move it as far as any other."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled; on every parameter."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Gradients are scaled down to this L2 norm."""


def make_optimizer(model: nn.Module, parameters: OptimizerParameters) -> torch.optim.AdamW:
    """AdamW over the model's parameters (tied ones once)."""
    return torch.optim.AdamW(
        [parameter for parameter in model.parameters() if parameter.requires_grad],
        lr=parameters.learning_rate,
        betas=parameters.betas,
        eps=parameters.eps,
        weight_decay=parameters.weight_decay,
    )


def warmed_up(parameters: OptimizerParameters, step: int) -> float:
    """The learning rate of optimizer step ``step`` (from 0) with the warm-up."""
    if step >= parameters.warmup_steps:
        return parameters.learning_rate
    return parameters.learning_rate * (step + 1) / (parameters.warmup_steps + 1)


def ensure_gradients(model: nn.Module) -> None:
    """Nothing to run is a gradient of 0, not of None: the optimizer then has moments of every
    parameter, and its state is whole."""
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)


def optimizer_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, learning_rate: float, max_norm: float
) -> float:
    """Clip, step, clear; returns the gradient's L2 norm before it was clipped.

    Raises:
        FloatingPointError: the gradient is not finite; no weight was changed.
    """
    norm = finite_norm(float(nn.utils.clip_grad_norm_(model.parameters(), max_norm)))
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm


def finite_norm(norm: float) -> float:
    """The gradient norm, if it is one.

    Raises:
        FloatingPointError: it is not finite.
    """
    if not math.isfinite(norm):
        raise FloatingPointError(
            f"the gradient norm is {norm}: the update would destroy the policy"
        )
    return norm


def write_empty(folder: Path, about: str) -> Path:
    """A committed empty checkpoint: what an algorithm does not use, or has not used yet."""
    (folder / _EMPTY).write_text(json.dumps({"empty": about}, sort_keys=True) + "\n")
    return folder


def is_empty(folder: Path) -> bool:
    """Whether the checkpoint says that it holds nothing."""
    return (Path(folder) / _EMPTY).is_file()


def save_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, folder: Path
) -> Path:
    """Write the optimizer's moments and step count; equal states give equal bytes.

    Raises:
        OSError: the folder cannot be written; it is named.
    """
    states = {name: optimizer.state.get(parameter) for name, parameter in model.named_parameters()}
    return write_state({name: state for name, state in states.items() if state}, steps, folder)


def write_state(
    moments: Mapping[str, Mapping[str, torch.Tensor]], steps: int, folder: Path
) -> Path:
    """Write the moments of each parameter by name, and the step count.

    Raises:
        OSError: the folder cannot be written; it is named.
    """
    flat = {
        f"{key}/{name}": state[key].detach().cpu().contiguous()
        for name, state in moments.items()
        for key in MOMENTS
    }
    with named_in_errors(folder):
        save_file(flat, folder / _MOMENTS)
        (folder / _STATE).write_text(json.dumps({"steps": steps}, sort_keys=True) + "\n")
    return folder


def save_gradients(gradients: Mapping[str, torch.Tensor], folder: Path) -> Path:
    """Write gradients by parameter name beside a trainer state.

    Raises:
        OSError: the folder cannot be written; it is named.
    """
    with named_in_errors(folder):
        save_file(dict(gradients), folder / GRADIENTS)
    return folder


def restore_state(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> int:
    """Load what `save_state` wrote into a fresh optimizer; returns the optimizer steps taken.

    Raises:
        TrainerStateError: the folder is no trainer state, or belongs to another model.
    """
    steps, moments = read_state(model, folder)
    for name, parameter in model.named_parameters():
        if name in moments:
            on_device = {key: moment.to(parameter.device) for key, moment in moments[name].items()}
            optimizer.state[parameter] = {"step": torch.tensor(float(steps)), **on_device}
    return steps


def read_state(model: nn.Module, folder: Path) -> tuple[int, dict[str, dict[str, torch.Tensor]]]:
    """What `write_state` wrote: the optimizer steps taken, and the moments of each parameter by
    name; none before the first step.

    Raises:
        TrainerStateError: the folder is no trainer state, or belongs to another model.
    """
    if is_empty(folder):
        return 0, {}
    if not (Path(folder) / _STATE).is_file():
        raise TrainerStateError(f"'{folder}' holds no {_STATE} and no {_EMPTY}")
    steps = json.loads((Path(folder) / _STATE).read_text())["steps"]
    found: dict[str, dict[str, torch.Tensor]] = {}
    with safe_open(Path(folder) / _MOMENTS, framework="pt") as moments:
        known = set(moments.keys())
        for name, parameter in model.named_parameters():
            keys = {key: f"{key}/{name}" for key in MOMENTS}
            if not known.issuperset(keys.values()):
                raise TrainerStateError(
                    f"trainer state '{folder}' has no moments of parameter '{name}': it belongs to "
                    "another model"
                )
            found[name] = {key: moments.get_tensor(stored) for key, stored in keys.items()}
            for key, moment in found[name].items():
                if moment.shape != parameter.shape:
                    raise TrainerStateError(
                        f"trainer state '{folder}': '{keys[key]}' has shape "
                        f"{tuple(moment.shape)}, the parameter {tuple(parameter.shape)}"
                    )
    return steps, found

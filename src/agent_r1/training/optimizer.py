"""AdamW and its state on disk: safetensors and JSON, restored bit for bit.

A trainer state is a folder with ``optimizer.safetensors`` (``exp_avg/<parameter>``,
``exp_avg_sq/<parameter>``) and ``trainer_state.json`` (optimizer steps taken). A folder with only
``empty.json`` is the state before the first step. ``gradients.safetensors`` is not part of the
state; it is written for inspection.
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
"""The gradients of an update's first optimizer step by parameter; written on request."""
MOMENTS = ("exp_avg", "exp_avg_sq")
"""AdamW's two moments of each parameter."""


Decay = Annotated[float, Field(ge=0, lt=1)]
"""Decay of a moment per optimizer step."""


class TrainerStateError(UserError, ValueError):
    """A trainer state does not fit the model; the message names the folder and the parameter."""


class OptimizerParameters(Parameters):
    """The AdamW part of ``sft`` and ``update`` in ``conf/``, with the defaults of ``update``."""

    learning_rate: float = Field(3e-4, gt=0)
    """Step size after the warm-up."""
    warmup_steps: int = Field(8, ge=0)
    """Optimizer steps over which the learning rate rises linearly from 0."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of AdamW's first and second moment."""
    eps: float = Field(1e-5, gt=0)
    """Added to the root of the second moment. Weights with gradients far below eps hardly move;
    without eps, AdamW would move them as far as any other."""
    weight_decay: float = Field(0.0, ge=0)
    """Decoupled weight decay, on every parameter."""
    max_grad_norm: float = Field(1.0, gt=0)
    """Gradients with a larger L2 norm are scaled down to it."""


def make_optimizer(model: nn.Module, parameters: OptimizerParameters) -> torch.optim.AdamW:
    """AdamW over the model's trainable parameters; tied ones are counted once."""
    return torch.optim.AdamW(
        [parameter for parameter in model.parameters() if parameter.requires_grad],
        lr=parameters.learning_rate,
        betas=parameters.betas,
        eps=parameters.eps,
        weight_decay=parameters.weight_decay,
    )


def warmed_up(parameters: OptimizerParameters, step: int) -> float:
    """The learning rate of optimizer step ``step`` (from 0), with the linear warm-up."""
    if step >= parameters.warmup_steps:
        return parameters.learning_rate
    return parameters.learning_rate * (step + 1) / (parameters.warmup_steps + 1)


def ensure_gradients(model: nn.Module) -> None:
    """Set missing gradients to 0, so that the optimizer keeps moments of every parameter."""
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)


def optimizer_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, learning_rate: float, max_norm: float
) -> float:
    """Clip the gradient, step, clear; returns the gradient's L2 norm before clipping.

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
    """``norm`` itself, if it is finite.

    Raises:
        FloatingPointError: it is not.
    """
    if not math.isfinite(norm):
        raise FloatingPointError(
            f"the gradient norm is {norm}: the update would destroy the policy"
        )
    return norm


def write_empty(folder: Path, about: str) -> Path:
    """Make ``folder`` an empty checkpoint, for state that the algorithm does not use (yet)."""
    (folder / _EMPTY).write_text(json.dumps({"empty": about}, sort_keys=True) + "\n")
    return folder


def is_empty(folder: Path) -> bool:
    """Whether the folder is an empty checkpoint."""
    return (Path(folder) / _EMPTY).is_file()


def save_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, folder: Path
) -> Path:
    """Write the optimizer's moments and step count; equal states give equal bytes.

    Raises:
        OSError: the folder cannot be written; the message names it.
    """
    states = {name: optimizer.state.get(parameter) for name, parameter in model.named_parameters()}
    return write_state({name: state for name, state in states.items() if state}, steps, folder)


def write_state(
    moments: Mapping[str, Mapping[str, torch.Tensor]], steps: int, folder: Path
) -> Path:
    """Write the moments by parameter name, and the step count.

    Raises:
        OSError: the folder cannot be written; the message names it.
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
    """Write gradients by parameter name into the folder of a trainer state.

    Raises:
        OSError: the folder cannot be written; the message names it.
    """
    with named_in_errors(folder):
        save_file(dict(gradients), folder / GRADIENTS)
    return folder


def restore_state(model: nn.Module, optimizer: torch.optim.Optimizer, folder: Path) -> int:
    """Load a state of `save_state` into a new optimizer; returns the optimizer steps taken.

    Raises:
        TrainerStateError: the folder is not a trainer state, or belongs to another model.
    """
    steps, moments = read_state(model, folder)
    for name, parameter in model.named_parameters():
        if name in moments:
            on_device = {key: moment.to(parameter.device) for key, moment in moments[name].items()}
            optimizer.state[parameter] = {"step": torch.tensor(float(steps)), **on_device}
    return steps


def read_state(model: nn.Module, folder: Path) -> tuple[int, dict[str, dict[str, torch.Tensor]]]:
    """Optimizer steps taken, and moments by parameter name (empty before the first step).

    Raises:
        TrainerStateError: the folder is not a trainer state, or belongs to another model.
    """
    if is_empty(folder):
        return 0, {}
    if not (Path(folder) / _STATE).is_file():
        raise TrainerStateError(
            f"'{folder}' is not a trainer state: it holds neither {_STATE} nor {_EMPTY}"
        )
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
                        f"{tuple(moment.shape)}, but the parameter has {tuple(parameter.shape)}"
                    )
    return steps, found

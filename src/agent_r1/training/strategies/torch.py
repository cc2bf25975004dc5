"""Plain torch: the model's own parameters, gradients and AdamW, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import torch
from transformers import PreTrainedModel

from agent_r1.training.optimizer import (
    OptimizerParameters,
    ensure_gradients,
    make_optimizer,
    optimizer_step,
    restore_state,
    save_state,
)
from agent_r1.training.policy import save_policy
from agent_r1.training.strategies.base import Block


class TorchStrategy:
    """The strategy ``torch``; see `agent_r1.training.strategies.base.TrainerStrategy`."""

    def __init__(
        self, model: PreTrainedModel, parameters: OptimizerParameters, state: Path | None = None
    ) -> None:
        """Trains ``model`` in place; ``state`` is the previous trainer state, None at the start."""
        self.model = model
        self.optimizer = make_optimizer(model, parameters)
        self.steps = 0 if state is None else restore_state(model, self.optimizer, state)
        self._max_norm = parameters.max_grad_norm

    def accumulate(
        self, blocks: Sequence[Block], loss_of: Callable[[PreTrainedModel, Block], torch.Tensor]
    ) -> None:
        ensure_gradients(self.model)
        for block in blocks:
            loss_of(self.model, block).backward()

    def gradients(self) -> dict[str, torch.Tensor]:
        named = ((name, p.grad) for name, p in self.model.named_parameters())
        return {
            name: gradient.to("cpu", torch.float32, copy=True)
            for name, gradient in named
            if gradient is not None
        }

    def step(self, learning_rate: float) -> float:
        norm = optimizer_step(self.model, self.optimizer, learning_rate, self._max_norm)
        self.steps += 1
        return norm

    def discard(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)

    def save(self, tokenizer_folder: Path, policy_folder: Path, state_folder: Path) -> None:
        save_policy(self.model, tokenizer_folder, policy_folder)
        save_state(self.model, self.optimizer, self.steps, state_folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

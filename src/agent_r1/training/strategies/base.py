"""The interface between an update and the code that takes its optimizer steps.

An update passes blocks and a function that computes a block's loss. The strategy computes
gradients, takes steps and writes checkpoints. It sums the losses of all blocks and never averages
them: their weights already account for the whole mini-batch. All strategies write the same format,
so an experiment can change its strategy between two iterations.

Several ranks could call every method together: each with its own blocks, and one of them writes.
Today each strategy runs in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, Self, TypeVar

import torch
from pydantic import Field, field_validator
from transformers import PreTrainedModel

from agent_r1.parameters import ParameterError, Parameters

Block = TypeVar("Block")


class DeepSpeedParameters(Parameters):
    """``update.deepspeed`` in ``conf/``."""

    zero_stage: int = Field(1)
    """What is partitioned over ranks: 1 the optimizer's state, 2 also the gradients. S. Rajbhandari
    et al., "ZeRO" (2020), https://arxiv.org/abs/1910.02054."""

    @field_validator("zero_stage")
    @classmethod
    def _is_supported(cls, stage: int) -> int:
        if stage not in (1, 2):
            raise ParameterError("only ZeRO stages 1 and 2 are supported: set it to 1 or 2")
        return stage


class StrategyParameters(Parameters):
    """The part of ``update`` in ``conf/`` that controls how optimizer steps are taken."""

    strategy: Literal["torch", "deepspeed"] = "torch"
    """What holds the policy in training. The gradients are equal up to rounding."""
    deepspeed: DeepSpeedParameters = DeepSpeedParameters()
    """For the strategy ``deepspeed``."""


class TrainerStrategy(Protocol):
    """A policy in training; a context manager that releases the strategy's resources."""

    model: PreTrainedModel
    steps: int
    """Optimizer steps taken, including those of earlier updates."""

    def accumulate(
        self, blocks: Sequence[Block], loss_of: Callable[[PreTrainedModel, Block], torch.Tensor]
    ) -> None:
        """Accumulate the gradients of all blocks of one optimizer step; without blocks they are 0.

        Args:
            blocks: in the order of execution.
            loss_of: computes a block's loss with the given model; called once per block.
        """

    def gradients(self) -> dict[str, torch.Tensor]:
        """Parameter name → accumulated gradient before clipping, float32, as a copy on the CPU."""

    def step(self, learning_rate: float) -> float:
        """Clip the gradient, step, clear; returns the gradient's L2 norm before clipping.

        Raises:
            FloatingPointError: the gradient is not finite; no weight was changed.
        """

    def discard(self) -> None:
        """Clear the gradients without taking a step."""

    def save(self, tokenizer_folder: Path, policy_folder: Path, state_folder: Path) -> None:
        """Write the policy with this tokenizer, and the trainer state.

        Raises:
            OSError: a folder cannot be written; the message names it.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

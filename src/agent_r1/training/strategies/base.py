"""The border between an update and how its optimizer steps are taken.

An update hands over blocks and a function that says a block's loss; what comes back is a gradient,
a step, a checkpoint. The losses of all blocks are added up, never averaged: their weights follow
from the whole mini-batch already. What is written is the same whoever writes it, so that an
experiment can change its strategy between two iterations.

Every method is one that several ranks could call together: each would be given its own blocks, and
one of them would write. Today each strategy is one process.
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
    """What ranks share out (S. Rajbhandari et al., "ZeRO" (2020)): 1 the optimizer's state, 2 the
    gradients too."""

    @field_validator("zero_stage")
    @classmethod
    def _is_supported(cls, stage: int) -> int:
        if stage not in (1, 2):
            raise ParameterError("only ZeRO stages 1 and 2 are supported: set one of them")
        return stage


class StrategyParameters(Parameters):
    """The part of ``update`` in ``conf/`` that says how optimizer steps are taken."""

    strategy: Literal["torch", "deepspeed"] = "torch"
    """Who holds the policy in training. The gradient is the same to rounding."""
    deepspeed: DeepSpeedParameters = DeepSpeedParameters()
    """Of the strategy of that name."""


class TrainerStrategy(Protocol):
    """A policy in training; a context manager, which gives back what the strategy took."""

    model: PreTrainedModel
    steps: int
    """Optimizer steps taken, in earlier updates too."""

    def accumulate(
        self, blocks: Sequence[Block], loss_of: Callable[[PreTrainedModel, Block], torch.Tensor]
    ) -> None:
        """Add up the gradients of all blocks of one optimizer step; without a block they are 0.

        Args:
            blocks: in the order in which they are run.
            loss_of: a block's loss, of the model that is passed; called once per block.
        """

    def gradients(self) -> dict[str, torch.Tensor]:
        """Parameter → what was accumulated, before it is clipped; a copy on the CPU."""

    def step(self, learning_rate: float) -> float:
        """Clip, take the step, clear; returns the gradient's L2 norm before it was clipped.

        Raises:
            FloatingPointError: the gradient is not finite; no weight was changed.
        """

    def discard(self) -> None:
        """Clear the gradients without a step."""

    def save(self, tokenizer_folder: Path, policy_folder: Path, state_folder: Path) -> None:
        """Write the policy with that tokenizer, and the trainer state.

        Raises:
            OSError: a folder cannot be written; it is named.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

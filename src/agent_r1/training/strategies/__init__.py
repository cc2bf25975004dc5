"""Trainer strategies: who holds the weights, the gradients and the optimizer of an update.

`agent_r1.training.strategies.base` has the border; a file each has what stands behind it.
"""

from __future__ import annotations

from pathlib import Path

from transformers import PreTrainedModel

from agent_r1.training.optimizer import OptimizerParameters
from agent_r1.training.strategies.base import (
    DeepSpeedParameters,
    StrategyParameters,
    TrainerStrategy,
)
from agent_r1.training.strategies.torch import TorchStrategy

__all__ = [
    "DeepSpeedParameters",
    "StrategyParameters",
    "TorchStrategy",
    "TrainerStrategy",
    "make_strategy",
]


def make_strategy(
    model: PreTrainedModel,
    parameters: StrategyParameters,
    optimizer: OptimizerParameters,
    state: Path | None = None,
) -> TrainerStrategy:
    """The configured strategy around ``model``, as the update before left it in ``state``.

    Args:
        model: trained in place.
        parameters: which strategy.
        optimizer: its AdamW.
        state: the trainer state of the update before; None is the first.

    Raises:
        TrainerStateError: the folder is no trainer state, or belongs to another model.
        ParameterError: the strategy cannot be had here; the message says what to do.
    """
    if parameters.strategy == "torch":
        return TorchStrategy(model, optimizer, state)
    # Imported where it is asked for: DeepSpeed takes seconds.
    from agent_r1.training.strategies.deepspeed import DeepSpeedStrategy

    return DeepSpeedStrategy(model, parameters.deepspeed, optimizer, state)

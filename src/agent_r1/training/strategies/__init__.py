"""Trainer strategies: what holds the weights, gradients and optimizer of an update.

`agent_r1.training.strategies.base` defines the interface; each implementation is one file.
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
    """The configured strategy for ``model``, restored from ``state``, the previous trainer state.

    Args:
        model: trained in place.
        parameters: the strategy to use.
        optimizer: the parameters of its AdamW.
        state: the previous trainer state; None at the start.

    Raises:
        TrainerStateError: the folder is not a trainer state, or belongs to another model.
        ParameterError: the strategy is not available here; the message says what to do.
    """
    if parameters.strategy == "torch":
        return TorchStrategy(model, optimizer, state)
    # Imported only here: importing DeepSpeed takes seconds.
    from agent_r1.training.strategies.deepspeed import DeepSpeedStrategy

    return DeepSpeedStrategy(model, parameters.deepspeed, optimizer, state)

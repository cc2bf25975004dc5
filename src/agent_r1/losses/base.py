"""What an objective is given and gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from pydantic import Field, field_validator

from agent_r1.losses.kl import LOSS_ESTIMATORS, kl_estimator
from agent_r1.parameters import ParameterError, Parameters

Aggregation = Literal[
    "token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant_norm"
]


class LossParameters(Parameters):
    """The part of ``update`` in ``conf/`` that the loss is made of."""

    objective: str = "ppo_clip"
    """Name in `agent_r1.losses.registry.OBJECTIVES`."""
    clip_low: float = Field(0.2, ge=0, le=1)
    """The ratio is clipped below at 1 - clip_low."""
    clip_high: float = Field(0.28, ge=0)
    """The ratio is clipped above at 1 + clip_high; higher than low keeps exploration (DAPO)."""
    dual_clip: float | None = Field(3.0, gt=1)
    """For negative advantages the loss is at most -A times this; null: no dual clip."""
    kl_coef: float = Field(0.0, ge=0)
    """Weight of the KL to the reference policy in the loss; 0 only reports it."""
    kl_estimator: str = "k3"
    """k2 or k3; k1's gradient is constant and is refused."""
    entropy_coef: float = Field(0.0, ge=0)
    """Weight of the entropy bonus."""
    aggregation: Aggregation = "token_mean"
    """How token losses become one number; see `agent_r1.losses.aggregation`."""
    norm_length: int = Field(1024, gt=0)
    """Tokens; the constant of ``constant_norm``."""

    @field_validator("kl_estimator")
    @classmethod
    def _has_a_gradient(cls, name: str) -> str:
        kl_estimator(name)
        if name not in LOSS_ESTIMATORS:
            raise ParameterError(
                f"the gradient of '{name}' does not depend on the reference, so it cannot be a "
                f"loss; use {' or '.join(LOSS_ESTIMATORS)}"
            )
        return name


class ObjectiveInputs(NamedTuple):
    """N action tokens, flat."""

    logprobs: torch.Tensor
    """float[N] nats, of the policy being trained; carries the gradient."""
    old_logprobs: torch.Tensor
    """float[N] nats, of the policy before the update."""
    advantages: torch.Tensor
    """float[N]."""
    mask: torch.Tensor
    """bool[N]: false where a token is not trained on, whatever stands there."""


class TokenLosses(NamedTuple):
    """What an objective makes of N tokens."""

    losses: torch.Tensor
    """float[N]; 0 where masked."""
    ratios: torch.Tensor
    """float[N], detached: policy / old policy."""
    clipped_low: torch.Tensor
    """bool[N]: the lower bound took the gradient away."""
    clipped_high: torch.Tensor
    """bool[N]: the upper bound took the gradient away."""


Objective = Callable[[ObjectiveInputs, LossParameters], TokenLosses]

"""What an objective is given and gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import torch
from pydantic import Field, field_validator

from agent_r1.kl.estimators import LOSS_ESTIMATORS, kl_estimator
from agent_r1.parameters import ParameterError, Parameters

Aggregation = Literal[
    "token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant_norm"
]


class LossParameters(Parameters):
    """The part of ``update`` in ``conf/`` that the loss is made of. An objective reads what its
    paper has and ignores the rest."""

    clip_low: float = Field(0.2, ge=0, le=1)
    """The ratio is clipped below at 1 - clip_low."""
    clip_high: float = Field(0.28, ge=0)
    """The ratio is clipped above at 1 + clip_high; higher than low keeps exploration (DAPO)."""
    dual_clip: float | None = Field(3.0, gt=1)
    """For negative advantages the loss is at most -A times this; null: no dual clip. ppo_clip."""
    beta: float = Field(0.1, gt=0)
    """How far DPO lets the policy go from the reference: the scale of its implicit reward."""
    kl_estimator: str = "k3"
    """k2 or k3; k1's gradient is constant and is refused."""
    entropy_coef: float = Field(0.0, ge=0)
    """Weight of the entropy bonus."""
    importance_correction: Literal["none", "token", "sequence"] = "none"
    """Weigh the loss by trainer / sampler, per token or per sequence; see
    `agent_r1.losses.importance`. For objectives on advantages: sft and dpo imitate what is there,
    whoever sampled it."""
    importance_mode: Literal["truncate", "mask"] = "truncate"
    """What a weight above the cap becomes: the cap, or 0."""
    importance_cap: float = Field(2.0, gt=0)
    """The largest weight."""
    sequence: Literal["trajectory", "step"] = "trajectory"
    """What a sequence is, wherever one is spoken of: all action tokens of a trajectory, or those of
    one step."""
    aggregation: Aggregation = "sequence_mean_token_mean"
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
    sequence: torch.Tensor | None = None
    """int64[N]: a label per sequence; for objectives that couple the tokens of one."""
    trajectory: torch.Tensor | None = None
    """int64[N]: the trajectory's index; for objectives on pairs."""
    pairs: torch.Tensor | None = None
    """int64[pairs, 2]: trajectory indices, the better one first."""
    reference_logprobs: torch.Tensor | None = None
    """float[N] nats, of the reference policy; None without one."""


class TokenLosses(NamedTuple):
    """What an objective makes of N tokens."""

    losses: torch.Tensor
    """float[N]; 0 where masked."""
    ratios: torch.Tensor
    """float[N], detached: policy / old policy, as the objective understands it."""
    clipped_low: torch.Tensor
    """bool[N]: the lower bound changed the gradient."""
    clipped_high: torch.Tensor
    """bool[N]: the upper bound changed the gradient."""
    reported: Mapping[str, torch.Tensor] = MappingProxyType({})
    """Further metrics: float[N] each, detached, aggregated with the weights of the losses."""


class Objective(NamedTuple):
    """An objective and what it needs to be given."""

    losses: Callable[[ObjectiveInputs, LossParameters], TokenLosses]
    couples: Literal["token", "sequence", "pairs"] = "token"
    """What must be seen whole to know the loss of one of its tokens. With ``pairs``, the losses are
    summed and divided by the number of pairs, whatever the aggregation."""
    trains_on: Literal["advantages", "best_of_group", "pairs"] = "advantages"
    """All trained tokens, weighted by their advantage; the trajectory of each group with the
    highest advantage; or the pairs of the table ``preferences``."""
    needs_reference: bool = False
    """Whether ``reference_logprobs`` must be there even without a KL in the loss."""

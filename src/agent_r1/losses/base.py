"""The inputs and outputs of an objective, and the parameters of the loss."""

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
    """The part of ``update`` in ``conf/`` that defines the loss.

    An objective uses the parameters of its paper and ignores the rest.
    """

    clip_low: float = Field(0.2, ge=0, le=1)
    """The ratio is clipped below at 1 - clip_low."""
    clip_high: float = Field(0.28, ge=0)
    """The ratio is clipped above at 1 + clip_high; more than clip_low keeps exploration (DAPO)."""
    dual_clip: float | None = Field(3.0, gt=1)
    """For ``ppo_clip``: with A < 0 the loss is at most -A times this; null: no dual clip."""
    beta: float = Field(0.1, gt=0)
    """Scale of DPO's implicit reward: a larger beta keeps the policy closer to the reference."""
    kl_estimator: str = "k3"
    """k2 or k3. k1 is refused: its gradient does not depend on the reference."""
    entropy_coef: float = Field(0.0, ge=0)
    """Weight of the entropy bonus."""
    importance_correction: Literal["none", "token", "sequence"] = "none"
    """Weight the loss by trainer / sampler, per token or per sequence; see
    `agent_r1.losses.importance`. Only for objectives on advantages: sft and dpo imitate the given
    trajectories, whichever policy sampled them."""
    importance_mode: Literal["truncate", "mask"] = "truncate"
    """A weight above the cap becomes the cap (``truncate``) or 0 (``mask``)."""
    importance_cap: float = Field(2.0, gt=0)
    """Largest weight."""
    sequence: Literal["trajectory", "step"] = "trajectory"
    """The unit called "sequence": all action tokens of a trajectory, or those of one step."""
    aggregation: Aggregation = "sequence_mean_token_mean"
    """How token losses become one number; see `agent_r1.losses.aggregation`."""
    norm_length: int = Field(1024, gt=0)
    """The constant of ``constant_norm``, in tokens."""

    @field_validator("kl_estimator")
    @classmethod
    def _has_a_gradient(cls, name: str) -> str:
        kl_estimator(name)
        if name not in LOSS_ESTIMATORS:
            raise ParameterError(
                f"'{name}' cannot be a loss: its gradient does not depend on the reference; use "
                f"{' or '.join(LOSS_ESTIMATORS)}"
            )
        return name


class ObjectiveInputs(NamedTuple):
    """What an objective reads of N action tokens, as flat tensors."""

    logprobs: torch.Tensor
    """float[N] nats: of the policy in training; carries the gradient."""
    old_logprobs: torch.Tensor
    """float[N] nats: of the policy before the update."""
    advantages: torch.Tensor
    """float[N]."""
    mask: torch.Tensor
    """bool[N]: whether the token is trained on. Other tokens may hold any values, also NaN."""
    sequence: torch.Tensor | None = None
    """int64[N]: a label per sequence; for objectives that couple the tokens of a sequence."""
    trajectory: torch.Tensor | None = None
    """int64[N]: the index of the trajectory; for objectives on pairs."""
    pairs: torch.Tensor | None = None
    """int64[pairs, 2]: trajectory indices, the chosen one first."""
    reference_logprobs: torch.Tensor | None = None
    """float[N] nats: of the reference policy; None without one."""

    def need(
        self, field: Literal["sequence", "trajectory", "pairs", "reference_logprobs"]
    ) -> torch.Tensor:
        """The optional field of this name, for an objective that cannot work without it.

        Raises:
            ValueError: it was not given.
        """
        values: torch.Tensor | None = getattr(self, field)
        if values is None:
            raise ValueError(f"the objective needs {field}, which was not given")
        return values


class TokenLosses(NamedTuple):
    """What an objective computes for N tokens."""

    losses: torch.Tensor
    """float[N]; 0 where masked."""
    ratios: torch.Tensor
    """float[N], detached: policy / old policy, as the objective defines it."""
    clipped_low: torch.Tensor
    """bool[N]: the lower bound changed the gradient."""
    clipped_high: torch.Tensor
    """bool[N]: the upper bound changed the gradient."""
    reported: Mapping[str, torch.Tensor] = MappingProxyType({})
    """Further metrics, float[N] each, detached; aggregated with the weights of the losses."""


class Objective(NamedTuple):
    """An objective and what it needs."""

    losses: Callable[[ObjectiveInputs, LossParameters], TokenLosses]
    couples: Literal["token", "sequence", "pairs"] = "token"
    """The unit whose tokens must be seen together to compute their losses. With ``pairs``, the sum
    of the losses is divided by the number of pairs, whatever the aggregation."""
    trains_on: Literal["advantages", "best_of_group", "pairs"] = "advantages"
    """``advantages``: all trained tokens, weighted by advantage. ``best_of_group``: the trajectory
    of each group with the highest advantage. ``pairs``: the table ``preferences``."""
    needs_reference: bool = False
    """Whether ``reference_logprobs`` is needed even without a KL in the loss."""

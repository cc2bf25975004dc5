"""The group ``update``: flat keys in ``conf/``, one model per concern here."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from agent_r1.kl.controller import KlParameters
from agent_r1.losses.base import LossParameters
from agent_r1.losses.registry import objective
from agent_r1.parameters import FlatParameters, ParameterError, part
from agent_r1.training.critic import CriticParameters
from agent_r1.training.optimizer import OptimizerParameters
from agent_r1.training.strategies.base import StrategyParameters


class UpdateParameters(FlatParameters):
    """``update`` in ``conf/``."""

    objective: str = "ppo_clip"
    """Name in `agent_r1.losses.registry.OBJECTIVES`."""
    loss: LossParameters = part(LossParameters)
    """The parameters of the loss."""
    kl: KlParameters = part(KlParameters)
    """The KL to the reference policy in the loss."""
    epochs: int = Field(1, ge=1)
    """Passes over the iteration's trajectories."""
    mini_batch_trajectories: int = Field(64, ge=1)
    """Largest number of trajectories (of pairs, if the objective trains on pairs) per optimizer
    step; mini-batches are equal in size ± 1."""
    micro_batch_trajectories: int = Field(16, ge=1)
    """Sequences per forward and backward pass; affects speed and memory only. A trajectory is one
    sequence as long as its context window does not move."""
    packing: bool = False
    """Put the sequences of a micro-batch one after another in one row instead of padding them;
    affects speed and memory only. It pays with flash attention. Other attention masks one long row,
    which costs more than padding unless lengths differ much."""
    skip_zero_advantages: bool = True
    """Skip tokens with advantage 0 if neither KL nor entropy is in the loss. The gradient is the
    same and zero-variance groups cost nothing, but the per-token metrics leave these tokens out."""
    kl_stop: float | None = Field(None, gt=0)
    """Nats per token: stop the update once KL(policy || policy before the update), by k3, exceeds
    this; null: take all steps."""
    keep_gradients: bool = False
    """Write the policy's gradient of the first optimizer step, before clipping, into the trainer
    state's folder, to compare two ways of computing the same update. It is as large as the policy
    in float32."""
    trainer: StrategyParameters = part(StrategyParameters)
    """How the policy's optimizer steps are taken."""
    optimizer: OptimizerParameters = part(OptimizerParameters)
    """The policy's AdamW."""
    critic: CriticParameters = CriticParameters()
    """The critic, which estimates the value of a state, and its training."""

    @field_validator("objective")
    @classmethod
    def _is_known(cls, name: str) -> str:
        objective(name)
        return name

    @model_validator(mode="after")
    def _a_shared_critic_sees_what_it_learns_from(self) -> UpdateParameters:
        trained = objective(self.objective).trains_on
        if self.critic.backbone == "shared" and trained != "advantages":
            raise ParameterError(
                f"objective '{self.objective}' trains on {trained}, so a critic on the policy's "
                "hidden states would not see the other trajectories: set critic.backbone to own or "
                "none"
            )
        return self

    @property
    def critic_adamw(self) -> OptimizerParameters:
        """The critic's AdamW: the policy's, with another learning rate."""
        return self.optimizer.model_copy(update={"learning_rate": self.critic.learning_rate})

    @property
    def needs_values(self) -> bool:
        """Whether a critic is trained."""
        return self.critic.backbone != "none"

    @property
    def needs_reference(self) -> bool:
        """Whether the loss needs the reference's log-probs."""
        return self.kl.kl_coef > 0 or objective(self.objective).needs_reference

    def with_kl_coef(self, coefficient: float) -> UpdateParameters:
        """A copy with another weight of the KL in the loss."""
        return self.model_copy(update={"kl": self.kl.model_copy(update={"kl_coef": coefficient})})

"""The parameter group ``rollout``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from agent_r1.parameters import ParameterError, Parameters


class DynamicSamplingParameters(Parameters):
    """``rollout.dynamic_sampling`` in ``conf/``: groups that teach nothing are replaced (DAPO)."""

    enabled: bool = False
    """Play further tasks in place of those whose trajectories all earn the same."""
    max_rounds: int = Field(4, ge=1)
    """Rounds of an iteration, the first one included; then it trains on the groups it has."""


class RolloutParameters(Parameters):
    """``rollout`` in ``conf/``: how trajectories are generated."""

    tasks_per_iteration: int = Field(32, ge=1)
    """Training tasks of one iteration; each epoch goes through all in another order."""
    group_size: int = Field(8, ge=1)
    """Trajectories per task, compared with each other by the group estimators."""
    temperature: float = Field(1.0, ge=0)
    """T of the softmax; 0 is greedy."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Sample from the most probable tokens that hold this mass; 1 keeps all. What is left out
    keeps its log-prob, so importance ratios stay unbiased only at 1."""
    top_k: int = Field(0, ge=0)
    """Sample from this many most probable tokens; 0 keeps all."""
    min_p: float = Field(0.0, ge=0, le=1)
    """Sample from tokens at least this probable relative to the most probable; 0 keeps all."""
    max_steps: int = Field(5, ge=1)
    """Actions of a trajectory; then it is truncated (``max_steps``)."""
    max_tokens_per_step: int = Field(64, ge=1)
    """Tokens of an action. A longer one is cut, not parsed, and ends the trajectory
    (``token_budget``): a policy that runs on would do so at the next step too."""
    max_context_tokens: int = Field(512, ge=2)
    """Tokens that the policy sees at most, the action that it samples included."""
    on_overflow: Literal["truncate", "end", "window"] = "truncate"
    """What happens when they are used up: the trajectory ends (``context_overflow``) with the last
    action or observation cut, or before anything is cut; or the oldest steps leave the context."""
    window_keep: float = Field(0.5, ge=0, le=1)
    """With ``window``: the share of the room behind the prompt that the latest steps have after a
    move."""
    concurrency: int = Field(256, ge=1)
    """Trajectories that run at the same time; more wait."""
    deterministic: bool = True
    """Same bytes from the same inputs, however long tools take: all live trajectories wait for
    each other before each generation. False lets each go on as soon as it can."""
    dynamic_sampling: DynamicSamplingParameters = DynamicSamplingParameters()
    """In training; an evaluation plays its tasks whatever they teach."""

    @model_validator(mode="after")
    def _has_room_for_a_prompt(self) -> RolloutParameters:
        whole_actions = self.on_overflow != "truncate"
        if whole_actions and self.max_tokens_per_step >= self.max_context_tokens:
            raise ParameterError(
                f"on_overflow {self.on_overflow} keeps max_tokens_per_step "
                f"({self.max_tokens_per_step}) tokens free for an action, and max_context_tokens is"
                f" {self.max_context_tokens}, so no prompt would fit: give max_context_tokens more"
            )
        return self

    @model_validator(mode="after")
    def _has_something_to_compare(self) -> RolloutParameters:
        if self.dynamic_sampling.enabled and self.group_size < 2:
            raise ParameterError(
                "dynamic_sampling.enabled is true, but a group of one has nothing to be compared "
                "with: set group_size to 2 or more, or dynamic_sampling.enabled to false"
            )
        return self

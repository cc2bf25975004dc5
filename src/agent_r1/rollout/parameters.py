"""The parameter group ``rollout``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from agent_r1.parameters import ParameterError, Parameters


class DynamicSamplingParameters(Parameters):
    """``rollout.dynamic_sampling`` in ``conf/``: replace groups whose rewards are all equal (DAPO,
    Yu et al. 2025, arXiv:2503.14476)."""

    enabled: bool = False
    """Whether to replace tasks whose trajectories all earn the same reward by further tasks."""
    max_rounds: int = Field(4, ge=1)
    """Maximal rounds per iteration, including the first. Then it trains on the groups it has."""


class RolloutParameters(Parameters):
    """``rollout`` in ``conf/``: how trajectories are generated."""

    tasks_per_iteration: int = Field(32, ge=1)
    """Training tasks per iteration. Each epoch visits all training tasks in another order."""
    group_size: int = Field(8, ge=1)
    """Trajectories per task. Group estimators compare them with each other."""
    temperature: float = Field(1.0, ge=0)
    """Temperature T of the softmax; 0 is greedy."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Sample from the most probable tokens whose probabilities sum to this; 1 keeps all tokens.
    Log-probs are not renormalised, so importance ratios are unbiased only at 1."""
    top_k: int = Field(0, ge=0)
    """Sample from this many most probable tokens; 0 keeps all tokens."""
    min_p: float = Field(0.0, ge=0, le=1)
    """Sample from tokens with at least this share of the largest probability; 0 keeps all."""
    max_steps: int = Field(5, ge=1)
    """Maximal actions per trajectory; then it is truncated (``max_steps``)."""
    max_tokens_per_step: int = Field(64, ge=1)
    """Maximal tokens per action. A longer action is cut, not parsed, and ends the trajectory
    (``token_budget``): the policy would probably do the same at the next step."""
    max_context_tokens: int = Field(512, ge=2)
    """Maximal tokens that the policy sees, including the action that it samples."""
    on_overflow: Literal["truncate", "end", "window"] = "truncate"
    """What happens when the context is full. ``truncate`` cuts the last action or observation and
    ends the trajectory (``context_overflow``). ``end`` ends it before anything is cut. ``window``
    removes the oldest steps from the context."""
    window_keep: float = Field(0.5, ge=0, le=1)
    """With ``window``: the maximal share of the context after the prompt that the latest steps take
    after a move."""
    concurrency: int = Field(256, ge=1)
    """Maximal number of trajectories that run at the same time. The others wait."""
    deterministic: bool = True
    """Whether equal inputs give equal bytes, however long tools take: all live trajectories wait
    for each other before each generation. If false, each continues as soon as it can."""
    dynamic_sampling: DynamicSamplingParameters = DynamicSamplingParameters()
    """For training only. An evaluation plays its tasks whatever they earn."""

    @model_validator(mode="after")
    def _has_room_for_a_prompt(self) -> RolloutParameters:
        whole_actions = self.on_overflow != "truncate"
        if whole_actions and self.max_tokens_per_step >= self.max_context_tokens:
            raise ParameterError(
                f"on_overflow {self.on_overflow} keeps max_tokens_per_step "
                f"({self.max_tokens_per_step}) tokens free for an action, but max_context_tokens is"
                f" {self.max_context_tokens}, so no prompt would fit: increase max_context_tokens"
            )
        return self

    @model_validator(mode="after")
    def _has_something_to_compare(self) -> RolloutParameters:
        if self.dynamic_sampling.enabled and self.group_size < 2:
            raise ParameterError(
                "dynamic_sampling.enabled is true, but with group_size 1 there is nothing to "
                "compare: set group_size to 2 or more, or dynamic_sampling.enabled to false"
            )
        return self

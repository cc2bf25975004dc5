"""The actions of each trajectory as one chain, by token or by step.

A chain has no observation tokens: what an action brings about is felt by all actions before it,
however much a tool said in between. It has no step without an action either: the reward of such a
step (the prompt did not fit) falls on the action before it, as all rewards fall on the last action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from agent_r1.advantages.inputs import EstimatorInputs
from agent_r1.advantages.scan import discounted_sums


@dataclass(frozen=True)
class Chain:
    """Links in order, trajectory after trajectory; a link is an action token or a step."""

    offsets: np.ndarray
    """int64[trajectories + 1]: trajectory ``i`` is links ``offsets[i]:offsets[i + 1]``."""
    rewards: np.ndarray
    """float64[links], the KL taken away; 0 where not scored."""
    firsts: np.ndarray | None = None
    """int64[links]: each step's first action token; None where the links are the tokens."""
    tokens: np.ndarray | None = None
    """int64[links]: action tokens of each step; None where the links are the tokens."""

    @property
    def acting(self) -> np.ndarray:
        """bool[trajectories]: it has a link."""
        return np.diff(self.offsets) > 0

    @property
    def ends(self) -> np.ndarray:
        """int64[acting trajectories]: the last link of each."""
        return self.offsets[1:][self.acting] - 1

    def returns(self, gamma: float) -> np.ndarray:
        """float64[links]: rewards from here to the end, discounted per link."""
        return discounted_sums(self.rewards, self.offsets, gamma)

    def read(self, per_token: np.ndarray) -> np.ndarray:
        """[links] of [action tokens]: what stands at the first token of each."""
        return per_token if self.firsts is None else per_token[self.firsts]

    def spread(self, per_link: np.ndarray) -> np.ndarray:
        """[action tokens] of [links]: a step's number at each of its tokens."""
        return per_link if self.firsts is None else np.repeat(per_link, self.tokens)

    def targets(self, per_link: np.ndarray) -> np.ndarray:
        """float64[action tokens] of [links]: a step's number at its first token, then NaN."""
        if self.firsts is None:
            return per_link
        targets = np.full(self.tokens.sum(), np.nan)
        targets[self.firsts] = per_link
        return targets


def chain(inputs: EstimatorInputs, level: Literal["token", "step"]) -> Chain:
    """The chain of the trajectories' actions at this level."""
    rewards, acts = _on_last_action(inputs), inputs.action_lengths > 0
    if level == "token":
        per_token = np.zeros(inputs.token_offsets[-1])
        per_token[inputs.token_offsets[1:][acts] - 1] = rewards[acts]
        if inputs.kl_coef:
            for _, tokens, penalty in inputs.kl_penalties():
                per_token[tokens] -= penalty
        return Chain(inputs.token_offsets[inputs.offsets], per_token)
    if inputs.kl_coef:
        rewards = rewards - inputs.kl_of_rows
    steps = np.concatenate([[0], np.cumsum(acts)])
    return Chain(
        steps[inputs.offsets],
        rewards[acts],
        inputs.token_offsets[:-1][acts],
        inputs.action_lengths[acts],
    )


def _on_last_action(inputs: EstimatorInputs) -> np.ndarray:
    """float64[rows]: step rewards, those of rows without an action moved to the last action.

    Before the first action nothing has been done that a reward could be credited to.
    """
    acts = inputs.action_lengths > 0
    if acts.all():
        return inputs.step_rewards
    rows = np.arange(len(acts))
    action = np.maximum.accumulate(np.where(acts, rows, -1))
    credited = action >= inputs.per_row(inputs.offsets[:-1])
    return np.bincount(action[credited], inputs.step_rewards[credited], len(acts))

"""The actions of each trajectory as one chain, by token or by step.

A chain skips observation tokens: a later reward reaches all earlier actions, discounted per action,
however long the tool results in between are. It also skips steps without an action (the prompt did
not fit): their reward moves to the last action before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from agent_r1.advantages.inputs import EstimatorInputs
from agent_r1.advantages.scan import discounted_sums


class StepTokens(NamedTuple):
    """Where the action tokens of each step are."""

    firsts: np.ndarray
    """int64[steps]: each step's first action token."""
    lengths: np.ndarray
    """int64[steps]: action tokens of each step."""


@dataclass(frozen=True)
class Chain:
    """Links in order, trajectory after trajectory; a link is an action token or a step."""

    offsets: np.ndarray
    """int64[trajectories + 1]: trajectory ``i`` is links ``offsets[i]:offsets[i + 1]``."""
    rewards: np.ndarray
    """float64[links]: the reward minus the KL; 0 where not scored."""
    steps: StepTokens | None = None
    """The tokens of each link; None if the links are the tokens themselves."""

    @property
    def acting(self) -> np.ndarray:
        """bool[trajectories]: whether the trajectory has a link."""
        return np.diff(self.offsets) > 0

    @property
    def ends(self) -> np.ndarray:
        """int64[acting trajectories]: the last link of each one."""
        return self.offsets[1:][self.acting] - 1

    def returns(self, gamma: float) -> np.ndarray:
        """float64[links]: sum of the rewards from each link to the end, discounted per link."""
        return discounted_sums(self.rewards, self.offsets, gamma)

    def read(self, per_token: np.ndarray) -> np.ndarray:
        """[action tokens] → [links]: the value at the first token of each link."""
        return per_token if self.steps is None else per_token[self.steps.firsts]

    def spread(self, per_link: np.ndarray) -> np.ndarray:
        """[links] → [action tokens]: a step's value at each of its tokens."""
        return per_link if self.steps is None else np.repeat(per_link, self.steps.lengths)

    def targets(self, per_link: np.ndarray) -> np.ndarray:
        """[links] → float64[action tokens]: a step's value at its first token, else NaN."""
        if self.steps is None:
            return per_link
        targets = np.full(self.steps.lengths.sum(), np.nan)
        targets[self.steps.firsts] = per_link
        return targets


def chain(inputs: EstimatorInputs, level: Literal["token", "step"]) -> Chain:
    """The chain of the trajectories' actions at ``level``."""
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
    of_steps = StepTokens(inputs.token_offsets[:-1][acts], inputs.action_lengths[acts])
    return Chain(steps[inputs.offsets], rewards[acts], of_steps)


def _on_last_action(inputs: EstimatorInputs) -> np.ndarray:
    """float64[rows]: step rewards; a row without an action passes its reward to the last action.

    A reward before the first action is dropped: there is no action to credit.
    """
    acts = inputs.action_lengths > 0
    if acts.all():
        return inputs.step_rewards
    rows = np.arange(len(acts))
    action = np.maximum.accumulate(np.where(acts, rows, -1))
    credited = action >= inputs.per_row(inputs.offsets[:-1])
    return np.bincount(action[credited], inputs.step_rewards[credited], len(acts))

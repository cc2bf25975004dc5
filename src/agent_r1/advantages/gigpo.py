"""GiGPO: groups inside groups. A step is also compared with other steps from the same state.

L. Feng et al., "Group-in-Group Policy Optimization for LLM Agent Training" (2025),
https://arxiv.org/abs/2505.10978, sec. 4: A = A_episode + step_weight · A_step. A_episode is the
trajectory's reward relative to its group, as in GRPO. A_step is the step's return
Σ_{k≥t} gamma^(k-t) r_k relative to the steps of the same group that start in an equal state
(``state_key``), its *anchor*. Both are deviations from the mean, divided by the standard deviation
if ``normalize_std``.
"""

from __future__ import annotations

import numpy as np

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.chain import chain
from agent_r1.advantages.groups import compare_in_groups
from agent_r1.advantages.inputs import EstimatorInputs


def gigpo(inputs: EstimatorInputs, parameters: AdvantageParameters) -> Estimate:
    """A step whose state no other step shares gets only the episode's advantage.

    The members of an anchor are steps: a trajectory that returns to a state is in it twice.
    """
    episode = compare_in_groups(inputs.trajectory_rewards, inputs.groups)
    actions = chain(inputs, "step")
    acts = inputs.action_lengths > 0
    returns = np.full(len(acts), np.nan)
    returns[acts] = actions.returns(parameters.gamma)
    returns[~inputs.per_row(inputs.scored)] = np.nan
    step = compare_in_groups(returns, inputs.states)
    scaling = parameters.normalize_std, parameters.eps
    advantages = inputs.per_row(episode.scaled(*scaling))
    advantages += parameters.step_weight * step.scaled(*scaling)
    compared = inputs.per_row(episode.compared) | step.compared
    return Estimate(actions.spread(advantages[acts]), compared=compared)

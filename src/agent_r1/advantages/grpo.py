"""GRPO: the reward of a trajectory relative to its group.

Z. Shao et al., "DeepSeekMath" (2024), https://arxiv.org/abs/2402.03300, sec. 4.1.2:
A = (r - mean) / (std + eps), the same for every token of the trajectory. With
``normalize_std: false``, A = r - mean.
"""

from __future__ import annotations

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.groups import compare_in_groups
from agent_r1.advantages.inputs import EstimatorInputs


def grpo(inputs: EstimatorInputs, parameters: AdvantageParameters) -> Estimate:
    """A per token; 0 in groups without variance, also in groups of one."""
    group = compare_in_groups(inputs.trajectory_rewards, inputs.groups)
    advantages = group.scaled(parameters.normalize_std, parameters.eps)
    return Estimate(inputs.per_token(advantages), compared=inputs.per_row(group.compared))

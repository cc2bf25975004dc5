"""GRPO: the reward of a trajectory relative to its group.

Z. Shao et al., "DeepSeekMath" (2024), sec. 4.1.2: A = (r - mean) / (std + eps), the same for every
token of the trajectory. With ``normalize_std: false`` A = r - mean: Z. Liu et al., "Understanding
R1-Zero-Like Training" (2025), Dr. GRPO.
"""

from __future__ import annotations

import numpy as np

from agent_r1.advantages.base import AdvantageParameters, Estimate, EstimatorInputs
from agent_r1.advantages.groups import group_statistics


def grpo(inputs: EstimatorInputs, parameters: AdvantageParameters) -> Estimate:
    """0 in groups without variance (so in groups of one), and where not scored."""
    statistics = group_statistics(inputs.trajectory_rewards, inputs.groups)
    group = inputs.groups
    advantages = inputs.trajectory_rewards - statistics.mean[group]
    if parameters.normalize_std:
        advantages = advantages / (statistics.std[group] + parameters.eps)
    meaningful = inputs.scored & ~statistics.zero_variance[group]
    return Estimate(inputs.per_token(np.where(meaningful, advantages, 0.0).astype(np.float32)))

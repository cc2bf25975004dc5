"""RLOO: the reward of a trajectory minus the mean reward of the others in its group.

W. Kool et al., "Buy 4 REINFORCE Samples, Get a Baseline for Free!" (2019); A. Ahmadian et al.,
"Back to Basics" (2024), https://arxiv.org/abs/2402.14740: A_i = r_i - Σ_{j≠i} r_j / (n - 1), the
same for every token of the trajectory. Computed as (r_i - mean) · n / (n - 1), which is equal.
"""

from __future__ import annotations

import numpy as np

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.groups import compare_in_groups
from agent_r1.advantages.inputs import EstimatorInputs


def rloo(inputs: EstimatorInputs, parameters: AdvantageParameters) -> Estimate:
    """A per token; 0 in groups without variance, also in groups of one."""
    group = compare_in_groups(inputs.trajectory_rewards, inputs.groups)
    advantages = group.deviation * (group.size / np.maximum(group.size - 1, 1))
    return Estimate(inputs.per_token(advantages), compared=inputs.per_row(group.compared))

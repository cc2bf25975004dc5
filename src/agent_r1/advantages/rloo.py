"""RLOO: the reward of a trajectory against the mean of the others of its group.

W. Kool et al., "Buy 4 REINFORCE Samples, Get a Baseline for Free!" (2019); A. Ahmadian et al.,
"Back to Basics" (2024): A_i = r_i - Σ_{j≠i} r_j / (n - 1), the same for every token of the
trajectory. It equals (r_i - mean) · n / (n - 1), which is how it is computed.
"""

from __future__ import annotations

import numpy as np

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.groups import compare_in_groups
from agent_r1.advantages.inputs import EstimatorInputs


def rloo(inputs: EstimatorInputs, parameters: AdvantageParameters) -> Estimate:
    """0 in groups without variance (so in groups of one, which have no others)."""
    group = compare_in_groups(inputs.trajectory_rewards, inputs.groups)
    advantages = group.deviation * (group.size / np.maximum(group.size - 1, 1))
    return Estimate(inputs.per_token(advantages), compared=inputs.per_row(group.compared))

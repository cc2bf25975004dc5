"""Dr. GRPO: GRPO without the division by the standard deviation, which favours low-variance groups.

Z. Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective" (2025),
https://arxiv.org/abs/2503.20783: A = r - mean. The paper's second change, a loss that is not
divided by the length, is an aggregation: ``constant_norm`` in `agent_r1.losses.aggregation`.
"""

from __future__ import annotations

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.groups import compare_in_groups
from agent_r1.advantages.inputs import EstimatorInputs


def dr_grpo(inputs: EstimatorInputs, parameters: AdvantageParameters) -> Estimate:
    """A per token; 0 in groups without variance, also in groups of one."""
    group = compare_in_groups(inputs.trajectory_rewards, inputs.groups)
    return Estimate(inputs.per_token(group.deviation), compared=inputs.per_row(group.compared))

"""REINFORCE++ with a baseline: the mean of the group first, the deviation of the batch afterwards.

J. Hu et al., "REINFORCE++" (2025): A = r - mean of the group, the same for every token of
the trajectory, then whitened over the batch: no group's small deviation inflates its advantages.
"""

from __future__ import annotations

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.dr_grpo import dr_grpo
from agent_r1.advantages.inputs import EstimatorInputs


def reinforce_plus_plus_baseline(
    inputs: EstimatorInputs, parameters: AdvantageParameters
) -> Estimate:
    """0 in groups without variance, also after whitening: they compare nothing."""
    return dr_grpo(inputs, parameters)

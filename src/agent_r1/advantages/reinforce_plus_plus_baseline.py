"""REINFORCE++ with a baseline: minus the mean of the group, then whitened over the batch.

J. Hu et al., "REINFORCE++" (2025), https://arxiv.org/abs/2501.03262: A = r - mean of the group, the
same for every token of the trajectory, then whitened over the batch. So a small standard deviation
in one group does not inflate its advantages.
"""

from __future__ import annotations

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.dr_grpo import dr_grpo
from agent_r1.advantages.inputs import EstimatorInputs


def reinforce_plus_plus_baseline(
    inputs: EstimatorInputs, parameters: AdvantageParameters
) -> Estimate:
    """0 in groups without variance, also after whitening: there is nothing to compare."""
    return dr_grpo(inputs, parameters)

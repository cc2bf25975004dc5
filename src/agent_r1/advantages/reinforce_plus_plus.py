"""REINFORCE++: discounted returns, with the batch as the baseline.

J. Hu et al., "REINFORCE++" (2025), https://arxiv.org/abs/2501.03262:
A_t = Σ_{k≥t} gamma^(k-t) r_k over the action tokens of the trajectory, then whitened over the
batch. The KL of each token is part of its reward (``kl_coef``). No groups are needed: a task with
one trajectory is compared with the other tasks.
"""

from __future__ import annotations

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.chain import chain
from agent_r1.advantages.inputs import EstimatorInputs


def reinforce_plus_plus(inputs: EstimatorInputs, parameters: AdvantageParameters) -> Estimate:
    """Returns per token, or per step and repeated over its tokens. The caller whitens them."""
    actions = chain(inputs, parameters.level)
    return Estimate(actions.spread(actions.returns(parameters.gamma)))

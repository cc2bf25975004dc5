"""Plain returns: REINFORCE without a baseline.

R. Williams, "Simple statistical gradient-following algorithms" (1992):
A_t = Σ_{k≥t} gamma^(k-t) r_k over the trajectory's action tokens (``level: token``) or steps.
"""

from __future__ import annotations

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.chain import chain
from agent_r1.advantages.inputs import EstimatorInputs


def returns(inputs: EstimatorInputs, parameters: AdvantageParameters) -> Estimate:
    """A_t is the return; the critic's target equals it. A truncated trajectory ends at the cut."""
    actions = chain(inputs, parameters.level)
    per_link = actions.returns(parameters.gamma)
    return Estimate(actions.spread(per_link), actions.targets(per_link))

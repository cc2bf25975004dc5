"""GAE: advantages from a critic.

J. Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation"
(2016), https://arxiv.org/abs/1506.02438, eq. 16: A_t = Σ_k (gamma lam)^k δ_{t+k} with
δ_t = r_t + gamma V_{t+1} - V_t; the critic's target is A_t + V_t. t counts action tokens
(``level: token``) or steps (``level: step``; V of a step is read at its first token, where its
state ends). V after the last action is 0 if the trajectory terminated, and the critic's value of
the state it stopped in if it was truncated.

Bootstrapping assumes that the episode could have continued. If the limit is part of the task, a
trajectory that reaches it has failed (F. Pardo et al., "Time Limits in Reinforcement Learning"
(2018), https://arxiv.org/abs/1712.00378, sec. 2 and 3): set ``bootstrap_truncated: false``, and V
is 0 there too. Otherwise reaching the limit earns the value of an average state, and the critic
never learns that it is a failure.
"""

from __future__ import annotations

import numpy as np

from agent_r1.advantages.base import AdvantageParameters, Estimate
from agent_r1.advantages.chain import chain
from agent_r1.advantages.inputs import EstimatorInputs
from agent_r1.advantages.scan import discounted_sums


def gae(inputs: EstimatorInputs, parameters: AdvantageParameters) -> Estimate:
    """Advantages, and the critic's targets in units of the return.

    Raises:
        SchemaError: a scored trajectory has no values, or a truncated one no bootstrap value.
    """
    actions = chain(inputs, parameters.level)
    values = actions.read(inputs.values)
    deltas = np.zeros(len(values))
    deltas[:-1] = values[1:]
    deltas[actions.ends] = 0.0
    if parameters.bootstrap_truncated:
        deltas[actions.ends] = inputs.bootstrap_values[actions.acting]
    deltas *= parameters.gamma
    deltas += actions.rewards
    deltas -= values
    advantages = discounted_sums(deltas, actions.offsets, parameters.gamma * parameters.lam)
    del deltas  # as large as the tables
    return Estimate(actions.spread(advantages), actions.targets(advantages + values))

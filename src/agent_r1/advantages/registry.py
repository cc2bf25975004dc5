"""Estimators by their name in ``conf/``. To add one, add a file here and a line below.

One from another package is named by its import path: ``my_package.estimators:MEAN``.
"""

from __future__ import annotations

from agent_r1.advantages.base import Estimator
from agent_r1.advantages.dr_grpo import dr_grpo
from agent_r1.advantages.gae import gae
from agent_r1.advantages.gigpo import gigpo
from agent_r1.advantages.grpo import grpo
from agent_r1.advantages.reinforce_plus_plus import reinforce_plus_plus
from agent_r1.advantages.reinforce_plus_plus_baseline import reinforce_plus_plus_baseline
from agent_r1.advantages.returns import returns
from agent_r1.advantages.rloo import rloo
from agent_r1.extras import named_object

ESTIMATORS: dict[str, Estimator] = {
    "dr_grpo": Estimator(dr_grpo, compares=True),
    "gae": Estimator(gae, has_returns=True, needs_values=True),
    "gigpo": Estimator(gigpo, compares=True),
    "grpo": Estimator(grpo, compares=True),
    "reinforce_plus_plus": Estimator(reinforce_plus_plus, whitens=True),
    "reinforce_plus_plus_baseline": Estimator(
        reinforce_plus_plus_baseline, whitens=True, compares=True
    ),
    "returns": Estimator(returns, has_returns=True),
    "rloo": Estimator(rloo, compares=True),
}


def estimator(name: str) -> Estimator:
    """The estimator with this name or import path.

    Raises:
        ParameterError: as `named_object`.
    """
    return named_object("advantage estimator", name, ESTIMATORS, Estimator)

"""Estimators by the name that stands in ``conf/``: a new one is a file here and a line below."""

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
from agent_r1.parameters import ParameterError, nearest

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
    """The estimator of this name.

    Raises:
        ParameterError: there is none; the nearest known one is named.
    """
    if name not in ESTIMATORS:
        raise ParameterError(f"unknown advantage estimator '{name}'.{nearest(name, ESTIMATORS)}")
    return ESTIMATORS[name]

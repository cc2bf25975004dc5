"""Estimators by the name that stands in ``conf/``: a new one is a file here and a line below."""

from __future__ import annotations

from agent_r1.advantages.base import Estimator
from agent_r1.advantages.grpo import grpo
from agent_r1.parameters import ParameterError, nearest

ESTIMATORS: dict[str, Estimator] = {
    "grpo": grpo,
}


def estimator(name: str) -> Estimator:
    """The estimator of this name.

    Raises:
        ParameterError: there is none; the nearest known one is named.
    """
    if name not in ESTIMATORS:
        raise ParameterError(f"unknown advantage estimator '{name}'.{nearest(name, ESTIMATORS)}")
    return ESTIMATORS[name]

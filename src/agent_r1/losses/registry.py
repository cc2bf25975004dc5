"""Objectives by the name that stands in ``conf/``: a new one is a file here and a line below."""

from __future__ import annotations

from agent_r1.losses.base import Objective
from agent_r1.losses.policy_gradient import ppo_clip
from agent_r1.parameters import ParameterError, nearest

OBJECTIVES: dict[str, Objective] = {
    "ppo_clip": ppo_clip,
}


def objective(name: str) -> Objective:
    """The objective of this name.

    Raises:
        ParameterError: there is none; the nearest known one is named.
    """
    if name not in OBJECTIVES:
        raise ParameterError(f"unknown objective '{name}'.{nearest(name, OBJECTIVES)}")
    return OBJECTIVES[name]

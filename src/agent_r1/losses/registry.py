"""Objectives by the name that stands in ``conf/``: a new one is a file here and a line below."""

from __future__ import annotations

from agent_r1.losses.base import Objective
from agent_r1.losses.cispo import cispo
from agent_r1.losses.dpo import dpo
from agent_r1.losses.gspo import gspo
from agent_r1.losses.ppo_clip import ppo_clip
from agent_r1.losses.sft import sft
from agent_r1.parameters import ParameterError, nearest

OBJECTIVES: dict[str, Objective] = {
    "ppo_clip": Objective(ppo_clip),
    "gspo": Objective(gspo, couples="sequence"),
    "cispo": Objective(cispo),
    "dpo": Objective(dpo, couples="pairs", trains_on="pairs", needs_reference=True),
    "sft": Objective(sft, trains_on="best_of_group"),
}


def objective(name: str) -> Objective:
    """The objective of this name.

    Raises:
        ParameterError: there is none; the nearest known one is named.
    """
    if name not in OBJECTIVES:
        raise ParameterError(f"unknown objective '{name}'.{nearest(name, OBJECTIVES)}")
    return OBJECTIVES[name]

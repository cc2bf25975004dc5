"""Objectives by their name in ``conf/``. To add one, add a file here and a line below.

One from another package is named by its import path: ``my_package.losses:HINGE``.
"""

from __future__ import annotations

from agent_r1.extras import named_object
from agent_r1.losses.base import Objective
from agent_r1.losses.cispo import cispo
from agent_r1.losses.dpo import dpo
from agent_r1.losses.gspo import gspo
from agent_r1.losses.ppo_clip import ppo_clip
from agent_r1.losses.sft import sft

OBJECTIVES: dict[str, Objective] = {
    "ppo_clip": Objective(ppo_clip),
    "gspo": Objective(gspo, couples="sequence"),
    "cispo": Objective(cispo),
    "dpo": Objective(dpo, couples="pairs", trains_on="pairs", needs_reference=True),
    "sft": Objective(sft, trains_on="best_of_group"),
}


def objective(name: str) -> Objective:
    """The objective with this name or import path.

    Raises:
        ParameterError: as `named_object`.
    """
    return named_object("objective", name, OBJECTIVES, Objective)

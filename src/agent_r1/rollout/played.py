"""Whether there was anything to play.

One trajectory without an action is data: its row says why. A batch in which there is no other kind
is a fault of the configuration, and nothing that comes after it could tell that from a bad policy.

A tool that is down for everyone (`Outages`) can be met by all trajectories. In training that is
data too: none of them is scored, the update learns nothing from them, and the next iteration calls
the tool again. An evaluation of nothing is no result.
"""

from __future__ import annotations

import json
import logging

import pandas as pd

from agent_r1.errors import UserError
from agent_r1.mdp import EndReason
from agent_r1.parameters import ParameterError
from agent_r1.rollout.parameters import RolloutParameters

logger = logging.getLogger(__name__)


class BrokenEnvironmentError(UserError, RuntimeError):
    """The infrastructure failed in every trajectory: there is nothing to train on."""


def check_played(
    rollouts: pd.DataFrame, parameters: RolloutParameters, *, outages_are_data: bool = False
) -> None:
    """Refuse a batch that could not be played at all, and tell of prompts that were too long.

    Args:
        rollouts: a whole batch, in the schema of this name.
        parameters: what it was played with.
        outages_are_data: accept a batch in which all met a tool that is down.

    Raises:
        BrokenEnvironmentError: the infrastructure failed in all trajectories.
        ParameterError: all prompts are too long.
    """
    last = rollouts[rollouts["end_reason"].notna()]
    broken = last[last["end_reason"] == EndReason.INFRASTRUCTURE.value]
    too_long = last[last["end_reason"] == EndReason.PROMPT_TOO_LONG.value]
    if len(last) and len(broken) == len(last):
        outages = ["unavailable_tool" in json.loads(info) for info in broken["info"]]
        if outages_are_data and all(outages):
            logger.warning(
                "a tool was down for all %d trajectories: none is scored, and nothing is learned "
                "from them",
                len(last),
            )
            return
        first = broken.iloc[0]
        failure = json.loads(first["info"]).get("failure", first["info"])
        raise BrokenEnvironmentError(
            f"the environment '{first['environment']}' failed in all {len(last)} trajectories; in "
            f"{first['trajectory_id']}: {failure}"
        )
    if too_long.empty:
        return
    lengths = [json.loads(info)["prompt_tokens"] for info in too_long["info"]]
    limit = f"rollout.max_context_tokens is {parameters.max_context_tokens}"
    if parameters.on_overflow != "truncate":
        limit += f", of which max_tokens_per_step ({parameters.max_tokens_per_step}) are kept free"
    if len(too_long) == len(last):
        raise ParameterError(
            f"no prompt fits into the context: the shortest has {min(lengths)} tokens, and {limit}"
        )
    logger.warning(
        "%d of %d prompts do not fit into the context (the longest has %d tokens, and %s): these "
        "trajectories have no action",
        len(too_long),
        len(last),
        max(lengths),
        limit,
    )

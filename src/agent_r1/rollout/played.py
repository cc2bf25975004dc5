"""Check that a batch of trajectories could be played.

A single trajectory without an action is data: its row gives the reason. If all trajectories of a
batch have no action, the configuration is faulty, and no later stage could distinguish that from a
bad policy.

All trajectories may meet a tool that is down (`Outages`). In training that is data too: none is
scored, the update learns nothing from them, and the next iteration calls the tool again. In an
evaluation it is an error, as there is no result.
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
    """The infrastructure failed in every trajectory, so there is nothing to train on."""


def check_played(
    rollouts: pd.DataFrame, parameters: RolloutParameters, *, outages_are_data: bool = False
) -> None:
    """Refuse a batch that could not be played at all, and warn about prompts that are too long.

    Args:
        rollouts: a whole batch, in the schema ``rollouts``.
        parameters: the parameters of the batch.
        outages_are_data: whether to accept a batch in which all trajectories met a tool that is
            down.

    Raises:
        BrokenEnvironmentError: the infrastructure failed in all trajectories.
        ParameterError: all prompts are too long.
    """
    last = rollouts[rollouts["end_reason"].notna()]
    _check_infrastructure(last, outages_are_data)
    _check_prompts(last, parameters)


def _check_infrastructure(last: pd.DataFrame, outages_are_data: bool) -> None:
    broken = last[last["end_reason"] == EndReason.INFRASTRUCTURE.value]
    if len(last) == 0 or len(broken) < len(last):
        return
    outages = ["unavailable_tool" in json.loads(info) for info in broken["info"]]
    if outages_are_data and all(outages):
        logger.warning(
            "a tool was down for all %d trajectories: none is scored, and nothing is learned from "
            "them",
            len(last),
        )
        return
    first = broken.iloc[0]
    failure = json.loads(first["info"]).get("failure", first["info"])
    raise BrokenEnvironmentError(
        f"the environment '{first['environment']}' failed in all {len(last)} trajectories; in "
        f"{first['trajectory_id']}: {failure}"
    )


def _check_prompts(last: pd.DataFrame, parameters: RolloutParameters) -> None:
    too_long = last[last["end_reason"] == EndReason.PROMPT_TOO_LONG.value]
    if too_long.empty:
        return
    lengths = [json.loads(info)["prompt_tokens"] for info in too_long["info"]]
    limit = f"rollout.max_context_tokens is {parameters.max_context_tokens}"
    if parameters.on_overflow != "truncate":
        limit += f", of which max_tokens_per_step ({parameters.max_tokens_per_step}) are kept free"
    if len(too_long) == len(last):
        raise ParameterError(
            f"no prompt fits into the context: the shortest has {min(lengths)} tokens, but {limit}"
        )
    logger.warning(
        "%d of %d prompts do not fit into the context (the longest has %d tokens, but %s); these "
        "trajectories have no action",
        len(too_long),
        len(last),
        max(lengths),
        limit,
    )

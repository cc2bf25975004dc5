"""Node: update the policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from agent_r1 import tables
from agent_r1.advantages import AdvantageParameters
from agent_r1.display import progress
from agent_r1.kl.controller import current_coefficient, steer
from agent_r1.seeding import derive_seed
from agent_r1.storage.staging import stage
from agent_r1.training import update as training
from agent_r1.training.metrics import with_values
from agent_r1.training.policy import ModelParameters, use_threads
from agent_r1.training.update_batch import prepare
from agent_r1.training.update_parameters import UpdateParameters

_NOT_STEERED = AdvantageParameters()
"""Parameters without a KL in the reward."""


def update_policy(
    policy: Path,
    reference: Path,
    critic: Path,
    trainer_state: Path,
    controllers: Mapping[str, Any],
    rollouts: pd.DataFrame,
    logprobs: pd.DataFrame,
    advantages: pd.DataFrame,
    preferences: pd.DataFrame,
    parameters: UpdateParameters,
    model: ModelParameters,
    seed: int,
    advantage: AdvantageParameters = _NOT_STEERED,
    *,
    iteration: str,
) -> tuple[Path, Path, Path, dict[str, Any], pd.DataFrame]:
    """The policy of this iteration, trained from that of the last one.

    The reference is used through its log-probs (table ``logprobs``); ``reference`` itself is for
    objectives that score trajectories of other iterations. If there is nothing to train on (no
    pair, no scored trajectory), the policy does not change. During a critic's warm-up, policy and
    trainer state do not change. The node also steers both KL coefficients: ``advantage`` defines
    how the one in the reward is steered.

    Returns:
        ``policy``, ``critic`` (unchanged if no critic is configured), ``trainer_state``,
        ``controllers`` (the KL coefficients of the next iteration, if steered),
        ``update_metrics``.

    Raises:
        SchemaError: the tables do not fit together, or a critic is configured and they lack values
            or returns; raised before training.
        CriticError: ``critic`` is not of the configured kind.
    """
    coefficient = current_coefficient(controllers, "kl_coef", parameters.kl)
    parameters = parameters.with_kl_coef(coefficient)
    use_threads(model)
    batch = prepare(
        tables.conform(rollouts, "rollouts"),
        tables.conform(logprobs, "logprobs"),
        tables.conform(advantages, "advantages"),
        needs_reference=parameters.needs_reference,
        preferences=tables.conform(preferences, "preferences"),
        needs_values=parameters.needs_values,
    )
    new_policy, new_critic, new_state = stage("policy"), stage("critic"), stage("trainer_state")
    metrics = training.update_policy(
        policy,
        critic,
        trainer_state,
        batch,
        parameters,
        model,
        derive_seed(seed, iteration, "update_policy"),
        new_policy,
        new_critic,
        new_state,
        progress.stepper(),
    )
    if advantage.kl_coef:
        in_reward = current_coefficient(controllers, "reward_kl_coef", advantage)
        metrics = with_values(metrics, reward_kl_coef=in_reward)
    measured = batch.reference_kl(), len(batch.trained)
    steered = steer(controllers, "kl_coef", parameters.kl, *measured)
    steered = steer(steered, "reward_kl_coef", advantage, *measured)
    return new_policy, new_critic, new_state, steered, metrics

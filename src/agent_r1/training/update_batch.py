"""The tables of one iteration, checked and flattened for the update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from agent_r1.kl.estimators import k3
from agent_r1.schemas import SchemaError
from agent_r1.tables.trajectories import align, in_order
from agent_r1.training.sequences import Sequences, build_sequences
from agent_r1.training.token_columns import token_column
from agent_r1.training.value_targets import ValueTargets, value_targets


@dataclass(frozen=True)
class UpdateBatch:
    """An iteration's rollouts, ready for training; per-token arrays are in flat action order."""

    sequences: Sequences
    old_logprobs: torch.Tensor
    """float32 nats: of the policy before the update, by the trainer."""
    reference_logprobs: torch.Tensor | None
    """float32 nats: of the reference policy; None without one."""
    sampler_logprobs: np.ndarray
    """float32 nats: as reported by the sampler."""
    advantages: torch.Tensor
    """float32."""
    mask: np.ndarray
    """bool: the token is trained on."""
    groups: np.ndarray
    """int64[trajectories]: the group of each trajectory."""
    group_sizes: np.ndarray
    """int64[trajectories]: number of scored members in its group."""
    pairs: np.ndarray
    """int64[pairs, 2]: trajectory indices, the chosen one first; empty without preferences."""
    targets: ValueTargets | None = None
    """The critic's targets; None without a critic."""

    @property
    def drift(self) -> np.ndarray:
        """float32 nats: |sampler's - trainer's log-prob| of all tokens where both are finite.

        Both are finite for every trained token.
        """
        sampler, trainer = self.sampler_logprobs, self.old_logprobs.numpy()
        known = np.isfinite(sampler) & np.isfinite(trainer)
        return np.abs(sampler[known] - trainer[known])

    @property
    def trained(self) -> np.ndarray:
        """int64: the trajectories with a trained token, ascending."""
        return np.unique(self.sequences.action_trajectory[self.mask])

    def reference_kl(self) -> float:
        """KL(policy before the update || reference) in nats per trained token, by k3.

        0 without a reference or a trained token.
        """
        if self.reference_logprobs is None or not self.mask.any():
            return 0.0
        mask = torch.from_numpy(self.mask)
        return k3(self.old_logprobs[mask], self.reference_logprobs[mask]).double().mean().item()


def prepare(
    rollouts: pd.DataFrame,
    logprobs: pd.DataFrame,
    advantages: pd.DataFrame,
    needs_reference: bool,
    preferences: pd.DataFrame | None = None,
    needs_values: bool = False,
) -> UpdateBatch:
    """Check and flatten the conformed tables of one iteration.

    Args:
        rollouts: like all tables, in any row order.
        logprobs: of the policy to train.
        advantages: with returns, if ``needs_values``.
        needs_reference: whether the reference's log-probs are required.
        preferences: preference pairs; None means no pairs.
        needs_values: whether values and returns are required, to train a critic.

    Raises:
        SchemaError: the tables do not hold the same steps; a list does not have the length of its
            action; a value of a trained token is not finite; required references, values or
            returns are missing; or a preference names an unknown trajectory.
    """
    rollouts = in_order(rollouts, "rollouts")
    logprobs = align(logprobs, "logprobs", rollouts)
    advantages = align(advantages, "advantages", rollouts)
    sequences = build_sequences(rollouts)
    lengths = sequences.action_lengths
    mask = token_column(advantages, "advantages", "loss_mask", lengths).astype(bool)
    columns = _columns(rollouts, logprobs, advantages, lengths, needs_reference)
    _require_finite(columns, mask)
    reference = columns.get("reference_logprobs")
    first_rows = sequences.trajectories.first_rows
    names = rollouts["group_id"].to_numpy(dtype=object)[first_rows]
    return UpdateBatch(
        sequences=sequences,
        old_logprobs=torch.tensor(columns["policy_logprobs"]),
        reference_logprobs=None if reference is None else torch.tensor(reference),
        sampler_logprobs=columns["action_logprobs"],
        advantages=torch.tensor(columns["advantages"]),
        mask=mask,
        groups=np.unique(names, return_inverse=True)[1],
        group_sizes=advantages["group_size"].to_numpy(np.int64)[first_rows],
        pairs=_pairs(preferences, sequences.trajectories.ids),
        targets=value_targets(logprobs, advantages, sequences, mask) if needs_values else None,
    )


def _require_finite(columns: Mapping[str, np.ndarray], mask: np.ndarray) -> None:
    for name, values in columns.items():
        if not np.isfinite(values[mask]).all():
            raise SchemaError(f"'{name}' of a trained token is not finite")


def _columns(
    rollouts: pd.DataFrame,
    logprobs: pd.DataFrame,
    advantages: pd.DataFrame,
    lengths: np.ndarray,
    needs_reference: bool,
) -> dict[str, np.ndarray]:
    """Column → float32[action tokens]; ``reference_logprobs`` only if the table has them."""
    columns = {
        "policy_logprobs": token_column(logprobs, "logprobs", "policy_logprobs", lengths),
        "advantages": token_column(advantages, "advantages", "advantages", lengths),
        "action_logprobs": token_column(rollouts, "rollouts", "action_logprobs", lengths),
    }
    if len(logprobs) and logprobs["reference_logprobs"].notna().all():
        reference = token_column(logprobs, "logprobs", "reference_logprobs", lengths)
        columns["reference_logprobs"] = reference
    elif needs_reference and len(logprobs):
        raise SchemaError(
            "update.kl_coef or update.objective needs the reference, but table 'logprobs' has no "
            "reference_logprobs: set logprobs.reference to true. If it is true already, the table "
            "is older: kedro rerun compute_logprobs --downstream cascade, with the same "
            "--iteration and --params"
        )
    return columns


def _pairs(preferences: pd.DataFrame | None, ids: list[str]) -> np.ndarray:
    if preferences is None:
        return np.empty((0, 2), np.int64)
    place = {name: index for index, name in enumerate(ids)}
    pairs = np.empty((len(preferences), 2), np.int64)
    for side, column in enumerate(("chosen_trajectory_id", "rejected_trajectory_id")):
        for row, name in enumerate(preferences[column].tolist()):
            if name not in place:
                raise SchemaError(
                    f"table 'preferences', row {row}: trajectory '{name}' is not in 'rollouts'"
                )
            pairs[row, side] = place[name]
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def health(batch: UpdateBatch, trained: np.ndarray) -> dict[str, float]:
    """Metrics of the whole batch that do not depend on the model.

    ``groups``: groups with a trained trajectory. ``zero_variance_groups``: the share of them whose
    advantages are all 0 (nothing to learn); ``zero_variance_group_count``: their number.
    ``singleton_groups``: groups with one scored member. ``trained_trajectories``.
    ``logprob_drift_max`` and ``logprob_drift_mean``: |sampler - trainer| in nats, over all action
    tokens with both log-probs. With a critic also those of `ValueTargets.health`.

    Args:
        batch: all trajectories.
        trained: int64: the trajectories with a trained token.
    """
    size = np.zeros(len(batch.sequences.trajectories.ids))
    flat = np.abs(np.where(batch.mask, batch.advantages.numpy(), 0.0))
    np.maximum.at(size, batch.sequences.action_trajectory, flat)
    groups, first, member = np.unique(batch.groups[trained], return_index=True, return_inverse=True)
    largest = np.zeros(len(groups))
    np.maximum.at(largest, member, size[trained])
    alone = batch.group_sizes[trained][first] == 1
    drift = batch.drift
    values = {} if batch.targets is None else batch.targets.health()
    return values | {
        "groups": len(groups),
        "zero_variance_groups": float((largest == 0).mean()) if len(groups) else 0.0,
        "zero_variance_group_count": int((largest == 0).sum()),
        "singleton_groups": int(alone.sum()),
        "trained_trajectories": len(trained),
        "logprob_drift_max": float(drift.max(initial=0.0)),
        "logprob_drift_mean": float(drift.mean()) if len(drift) else 0.0,
    }

"""The tables of one iteration, checked and flattened for the update."""

from __future__ import annotations

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
    """An iteration's rollouts, ready to be trained on; per-token arrays in flat action order."""

    sequences: Sequences
    old_logprobs: torch.Tensor
    """float32 nats."""
    reference_logprobs: torch.Tensor | None
    """float32 nats; None without a reference."""
    sampler_logprobs: np.ndarray
    """float32 nats, as the sampler reported them."""
    advantages: torch.Tensor
    """float32."""
    mask: np.ndarray
    """bool: the token is trained on."""
    groups: np.ndarray
    """int64[trajectories]: the group of each trajectory."""
    group_sizes: np.ndarray
    """int64[trajectories]: the scored members of its group."""
    pairs: np.ndarray
    """int64[pairs, 2]: trajectories, the better one first; none without preferences."""
    targets: ValueTargets | None = None
    """None without a critic."""

    @property
    def drift(self) -> np.ndarray:
        """float32 nats: |sampler's - trainer's log-prob| of the tokens for which both are finite;
        where a token is trained on, they are."""
        sampler, trainer = self.sampler_logprobs, self.old_logprobs.numpy()
        known = np.isfinite(sampler) & np.isfinite(trainer)
        return np.abs(sampler[known] - trainer[known])

    @property
    def trained(self) -> np.ndarray:
        """int64: the trajectories that have a trained token, ascending."""
        return np.unique(self.sequences.action_trajectory[self.mask])

    def reference_kl(self) -> float:
        """Mean over the trained tokens of k3(policy before the update, reference), nats; 0 without
        a reference or a trained token."""
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
        rollouts: any row order, as of all of them.
        logprobs: of the policy that is trained.
        advantages: of an estimator with returns, if values are needed.
        needs_reference: the reference's log-probs must be there.
        preferences: None is no pair.
        needs_values: a critic is trained: values and returns must be there.

    Raises:
        SchemaError: they do not hold the same steps, or a list has not its action's length, or a
            trained token has a value that is not finite, or needed references, values or returns
            are missing, or a preference names a trajectory that is not there.
    """
    rollouts = in_order(rollouts, "rollouts")
    logprobs = align(logprobs, "logprobs", rollouts)
    advantages = align(advantages, "advantages", rollouts)
    sequences = build_sequences(rollouts)

    def flat(frame: pd.DataFrame, table: str, column: str) -> np.ndarray:
        return token_column(frame, table, column, sequences.action_lengths)

    mask = flat(advantages, "advantages", "loss_mask").astype(bool)
    columns = {
        "policy_logprobs": flat(logprobs, "logprobs", "policy_logprobs"),
        "advantages": flat(advantages, "advantages", "advantages"),
        "action_logprobs": flat(rollouts, "rollouts", "action_logprobs"),
    }
    reference = None
    if len(logprobs) and logprobs["reference_logprobs"].notna().all():
        reference = flat(logprobs, "logprobs", "reference_logprobs")
        columns["reference_logprobs"] = reference
    elif needs_reference and len(logprobs):
        raise SchemaError(
            "update.kl_coef is not 0 or update.objective compares with the reference, but table "
            "'logprobs' has no reference_logprobs: set logprobs.reference to true. If it is, the "
            "table is older: kedro rerun compute_logprobs --downstream cascade, with the same "
            "--iteration and --params"
        )
    for name, values in columns.items():
        if not np.isfinite(values[mask]).all():
            raise SchemaError(f"'{name}' of a trained token is not finite")
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
    """Metrics of the whole batch that do not depend on the model; ``trained`` are trajectories.

    ``groups`` (those that have a trained trajectory), ``zero_variance_groups`` (the share of them
    whose advantages are all 0: nothing to learn), ``zero_variance_group_count`` and
    ``singleton_groups`` (their number, and how many have one scored member),
    ``trained_trajectories``, ``logprob_drift_max`` and ``logprob_drift_mean`` (nats, |sampler -
    trainer|, over all action tokens that both have); with a critic those of `ValueTargets.health`.
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

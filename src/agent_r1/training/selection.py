"""The trajectories or pairs that an objective trains on, and their optimizer steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from agent_r1.losses.base import Objective
from agent_r1.seeding import derive_seed
from agent_r1.training.update_batch import UpdateBatch


def select(batch: UpdateBatch, objective: Objective) -> UpdateBatch:
    """The batch, restricted to the tokens and pairs that the objective trains on."""
    owner = batch.sequences.action_trajectory
    if objective.trains_on == "best_of_group":
        return replace(batch, mask=batch.mask & np.isin(owner, best_of_group(batch)))
    if objective.trains_on == "pairs":
        # Drop pairs with a trajectory that has no trained token.
        pairs = batch.pairs[np.isin(batch.pairs, batch.trained).all(axis=1)]
        return replace(batch, mask=batch.mask & np.isin(owner, pairs), pairs=pairs)
    return batch


def best_of_group(batch: UpdateBatch) -> np.ndarray:
    """int64: in each group the trajectory with the highest mean advantage, if that is above 0.

    Of equal advantages, the trajectory whose id sorts first is used.
    """
    trained = batch.trained
    owner = batch.sequences.action_trajectory[batch.mask]
    count = len(batch.sequences.trajectories.ids)
    total = np.bincount(owner, batch.advantages.numpy()[batch.mask].astype(np.float64), count)
    score = (total / np.maximum(np.bincount(owner, minlength=count), 1))[trained]
    order = np.lexsort((trained, -score, batch.groups[trained]))
    _, first = np.unique(batch.groups[trained][order], return_index=True)
    best = order[first]
    return trained[best[score[best] > 0]]


def mini_batches(
    batch: UpdateBatch, objective: Objective, epochs: int, size: int, seed: int
) -> Iterator[tuple[UpdateBatch, np.ndarray]]:
    """The mini-batches of an update, one per optimizer step: batch and trajectories (int64).

    Each epoch has its own seeded permutation, split evenly. A mini-batch is a number of
    trajectories, or of pairs if the objective trains on pairs; the batch then holds these pairs.

    Args:
        batch: result of `select`.
        objective: the objective that the batch was selected for.
        epochs: passes over all trajectories or pairs.
        size: largest number of trajectories or pairs per optimizer step.
        seed: decides the order.
    """
    on_pairs = objective.trains_on == "pairs"
    items = np.arange(len(batch.pairs)) if on_pairs else batch.trained
    for picked in permuted(items, epochs, size, seed):
        if on_pairs:
            part = replace(batch, pairs=batch.pairs[picked])
            yield part, np.unique(part.pairs)
        else:
            yield batch, picked


def permuted(items: np.ndarray, epochs: int, size: int, seed: int) -> Iterator[np.ndarray]:
    """``items`` in parts of at most ``size``, equal in size ± 1; each epoch has its own order."""
    parts = -(-len(items) // size)
    for epoch in range(epochs):
        order = np.random.default_rng(derive_seed(seed, "epoch", epoch)).permutation(items)
        yield from np.array_split(order, parts) if parts else ()

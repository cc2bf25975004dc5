"""The trajectories or pairs that an objective trains on, and the number of steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from agent_r1.losses.registry import objective
from agent_r1.schemas import SchemaError
from agent_r1.training.selection import best_of_group, mini_batches, select
from agent_r1.training.update_batch import UpdateBatch, prepare
from tests.support.tiny_models import flat_weights, random_model
from tests.support.update_batches import (
    OWNER,
    TABLE,
    TOKENS,
    batch,
    metric,
    preferences,
    run,
    update_tables,
)


def advantages(**by_trajectory: float) -> np.ndarray:
    """0 except where given; keywords are ids with ``_`` instead of ``/``."""
    return np.array([by_trajectory.get(name.replace("/", "_"), 0.0) for name in OWNER])


def names(of: UpdateBatch, trajectories: np.ndarray) -> list[str]:
    return [of.sequences.trajectories.ids[index] for index in trajectories]


def test_the_best_of_each_group_is_imitated_if_its_advantage_is_positive() -> None:
    of = batch(advantages=advantages(p_0=0.5, p_1=1.5, p_3=-2.0, q_2=-0.1, r_0=0.0))
    assert names(of, best_of_group(of)) == ["p/1"]
    of = batch(advantages=advantages(p_0=0.5, p_1=1.5, q_3=0.1))
    assert names(of, best_of_group(of)) == ["p/1", "q/3"]


def test_ties_go_to_the_first_id_and_masked_trajectories_are_never_taken() -> None:
    equal = advantages(p_1=1.0, p_2=1.0, p_3=1.0)
    of = batch(advantages=equal)
    assert names(of, best_of_group(of)) == ["p/1"]
    of = batch(advantages=equal, mask=OWNER != "p/1")
    assert names(of, best_of_group(of)) == ["p/2"]


def test_rejection_sampling_trains_only_on_the_best() -> None:
    of = batch(advantages=advantages(p_1=1.0, p_0=-1.0, q_2=0.5))
    selected = select(of, objective("sft"))
    assert set(OWNER[selected.mask]) == {"p/1", "q/2"}
    _, metrics = run(of, objective="sft")
    assert metric(metrics, "tokens") == [np.isin(OWNER, ["p/1", "q/2"]).sum()]
    assert metric(metrics, "trained_trajectories") == [2]
    assert metric(metrics, "zero_variance_groups") == [pytest.approx(1 / 3)]
    likelihood = -metric(metrics, "policy_loss")[0]
    expected = of.old_logprobs.numpy()[selected.mask].mean()
    assert likelihood == pytest.approx(expected, abs=1e-5)


def test_pairs_need_both_sides() -> None:
    of = select(batch(mask=OWNER != "p/3"), objective("dpo"))
    assert [names(of, pair) for pair in of.pairs] == [
        ["p/2", "p/0"],
        ["q/0", "q/2"],
        ["q/1", "q/3"],
    ]
    assert set(OWNER[of.mask]) == {"p/0", "p/2", "q/0", "q/1", "q/2", "q/3"}


def test_p27_mini_batches_are_even_and_hold_each_item_once_per_epoch() -> None:
    for name, items in (("ppo_clip", 9), ("dpo", 5)):
        of = select(batch(), objective(name))
        steps = list(mini_batches(of, objective(name), epochs=2, size=4, seed=0))
        parts = -(-items // 4)
        assert len(steps) == 2 * parts
        counts = [len(part.pairs) if name == "dpo" else len(picked) for part, picked in steps]
        assert max(counts) - min(counts) <= 1
        assert sum(counts) == 2 * items
        if name == "dpo":
            seen = np.concatenate([part.pairs for part, _ in steps[:parts]])
            assert sorted(map(tuple, seen)) == sorted(map(tuple, of.pairs))


@pytest.mark.parametrize("name", ["sft", "dpo", "gspo", "cispo"])
def test_without_training_data_no_step_is_taken(name: str) -> None:
    of = prepare(
        *update_tables(mask=np.zeros(TOKENS, bool)), needs_reference=True, preferences=preferences()
    )
    weights, metrics = run(of, objective=name)
    assert torch.equal(weights, flat_weights(random_model()))
    assert metric(metrics, "trained_trajectories") == [0]
    assert metric(metrics, "grad_norm") == []


def test_a_preference_for_an_unknown_trajectory_is_an_error() -> None:
    with pytest.raises(SchemaError, match="'preferences', row 1: trajectory 'p/9' is not in"):
        prepare(
            *update_tables(),
            needs_reference=True,
            preferences=preferences([("p/0", "p/1"), ("p/9", "p/1")]),
        )
    assert "p/9" not in set(TABLE["trajectory_id"])

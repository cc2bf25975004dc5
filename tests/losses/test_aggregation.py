"""Aggregation: reference values; splits, padding and masked rows do not change it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.losses.aggregation import aggregate, token_weights
from agent_r1.parameters import ParameterError

NAMES = ("token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "constant_norm")
# Three trajectories of three tokens; null is masked. The last one is wholly masked.
LOSSES = [1.0, 2.0, math.nan, 3.0, 4.0, 5.0, math.nan, math.nan, math.nan]
MASK = ~np.isnan(LOSSES)
SEQUENCE = np.repeat([0, 1, 2], 3)


@pytest.mark.parametrize(("name", "value"), [*zip(NAMES, (3.0, 2.75, 7.5, 2.5), strict=True)])
def test_values(name: str, value: float) -> None:
    weights = torch.from_numpy(token_weights(MASK, SEQUENCE, name, norm_length=3))
    assert aggregate(torch.tensor(LOSSES).double(), weights).item() == pytest.approx(value)


@pytest.mark.parametrize("name", NAMES)
def test_p06_a_masked_nan_is_not_in_loss_or_gradient(name: str) -> None:
    losses = torch.tensor(LOSSES).double().requires_grad_()
    weights = torch.from_numpy(token_weights(MASK, SEQUENCE, name))
    loss = aggregate(losses, weights)
    assert loss.isfinite()
    loss.backward()
    assert losses.grad.isfinite().all()
    assert losses.grad[~torch.from_numpy(MASK)].eq(0).all()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_train_on_is_zero(name: str) -> None:
    assert token_weights(np.zeros(3, bool), np.zeros(3, int), name).tolist() == [0, 0, 0]


def test_an_unknown_aggregation_is_an_error() -> None:
    with pytest.raises(ParameterError, match="Did you mean 'token_mean'"):
        token_weights(MASK, SEQUENCE, "token_means")


@st.composite
def batches(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sequence = np.array(draw(st.lists(st.integers(0, 4), min_size=1, max_size=20)))
    size = len(sequence)
    mask = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    losses = np.array(draw(st.lists(st.floats(-5, 5), min_size=size, max_size=size)))
    return losses, mask, sequence


def total(losses: np.ndarray, weights: np.ndarray) -> float:
    return aggregate(torch.from_numpy(losses), torch.from_numpy(weights)).item()


@pytest.mark.parametrize("name", NAMES)
@given(batch=batches(), cut=st.integers(0, 20), seed=st.integers(0, 9))
def test_p22_splits_order_and_masked_trajectories_change_nothing(name, batch, cut, seed) -> None:
    losses, mask, sequence = batch
    weights = token_weights(mask, sequence, name)
    whole = total(losses, weights)
    parts = total(losses[:cut], weights[:cut]) + total(losses[cut:], weights[cut:])
    assert parts == pytest.approx(whole, abs=1e-9)

    order = np.random.default_rng(seed).permutation(len(losses))
    shuffled = token_weights(mask[order], sequence[order], name)
    assert total(losses[order], shuffled) == pytest.approx(whole, abs=1e-9)

    padded = token_weights(np.append(mask, [False] * 3), np.append(sequence, [9, 9, 0]), name)
    assert total(np.append(losses, [7.0] * 3), padded) == pytest.approx(whole, abs=1e-9)


def test_p27_the_aggregation_decides_the_weight_of_a_long_trajectory() -> None:
    mask, sequence = np.ones(5, bool), np.array([0, 1, 1, 1, 1])
    share = {name: token_weights(mask, sequence, name)[0] for name in NAMES[:3]}
    assert share == pytest.approx(
        {"token_mean": 0.2, "sequence_mean_token_mean": 0.5, "sequence_mean_token_sum": 0.5}
    )

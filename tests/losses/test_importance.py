"""Importance weights between sampler and trainer: per token or sequence, truncated or masked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agent_r1.losses.base import LossParameters
from agent_r1.losses.importance import Importance, effective_sample_size, importance

WEIGHTS = np.array([1.0, 3.0, 0.5, 2.0, 0.25])
SAMPLER = np.full(5, -1.0)
TRAINER = SAMPLER + np.log(WEIGHTS)
SEQUENCE = np.array([7, 7, 7, 2, 2])
ALL = np.ones(5, bool)


def correct(kind: str, mask: np.ndarray = ALL, **parameters: Any) -> Importance:
    how = LossParameters(importance_correction=kind, **parameters)
    return importance(TRAINER, SAMPLER, mask, SEQUENCE, how)


@pytest.mark.parametrize(
    ("kind", "mode", "weights"),
    [
        ("token", "truncate", [1, 1.4, 0.5, 1.4, 0.25]),
        ("token", "mask", [1, 0, 0.5, 0, 0.25]),
        ("sequence", "truncate", [1.4, 1.4, 1.4, 0.5, 0.5]),  # products 1.5 and 0.5
        ("sequence", "mask", [0, 0, 0, 0.5, 0.5]),
    ],
)
def test_p25_weights_above_the_cap(kind: str, mode: str, weights: list[float]) -> None:
    found = correct(kind, importance_mode=mode, importance_cap=1.4)
    assert found.weights.tolist() == pytest.approx(weights)
    assert found.capped == (0.4 if kind == "token" else 0.5)
    assert found.weights.dtype == np.float32


def test_without_a_correction_the_effective_sample_size_is_still_reported() -> None:
    found = correct("none")
    assert found.weights is None
    assert found.capped == 0
    assert found.effective_sample_size == pytest.approx(6.75**2 / (5 * (WEIGHTS**2).sum()))


def test_p06_masked_tokens_are_not_in_a_sequences_weight_and_have_weight_one() -> None:
    mask = np.array([True, False, True, True, True])
    for values in (TRAINER, SAMPLER):
        poisoned = np.where(mask, values, np.nan)
        trainer = poisoned if values is TRAINER else TRAINER
        sampler = poisoned if values is SAMPLER else SAMPLER
        how = LossParameters(importance_correction="sequence", importance_cap=9)
        found = importance(trainer, sampler, mask, SEQUENCE, how)
        assert found.weights.tolist() == pytest.approx([0.5, 1, 0.5, 0.5, 0.5])
        assert found.effective_sample_size == pytest.approx(1)


def test_p25_equal_log_probs_have_weight_one() -> None:
    for kind in ("token", "sequence"):
        how = LossParameters(importance_correction=kind)
        found = importance(SAMPLER, SAMPLER, ALL, SEQUENCE, how)
        assert found.weights.tolist() == [1] * 5
        assert found.effective_sample_size == 1


def test_a_huge_difference_does_not_overflow() -> None:
    how = LossParameters(importance_correction="sequence", importance_cap=2)
    found = importance(np.zeros(2), np.full(2, -500.0), np.ones(2, bool), np.zeros(2, int), how)
    assert found.weights.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("weights", "share"),
    [([1, 1, 1, 1], 1.0), ([1, 0, 0, 0], 0.25), ([3, 1], 0.8), ([0, 0], 0.0), ([], 1.0)],
)
def test_the_effective_sample_size(weights: list[float], share: float) -> None:
    assert effective_sample_size(np.array(weights, float)) == pytest.approx(share)

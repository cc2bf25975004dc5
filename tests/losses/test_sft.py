"""Rejection-sampling fine-tuning: the negative log-likelihood, without the advantage."""

from __future__ import annotations

import math

import pytest

from agent_r1.losses.base import LossParameters
from agent_r1.losses.registry import objective
from tests.support.objective_inputs import gradient, inputs

sft = objective("sft").losses


def test_the_loss_is_the_negative_log_likelihood() -> None:
    given = inputs([1.5, 0.5], advantage=[7.0, -7.0])
    result = sft(given, LossParameters())
    assert result.losses.tolist() == pytest.approx([1 - math.log(1.5), 1 - math.log(0.5)])
    assert gradient(result.losses, given) == [-1, -1]
    assert not (result.clipped_low | result.clipped_high).any()


def test_p06_nan_in_a_masked_slot_leaves_the_loss_finite_and_its_gradient_zero() -> None:
    given = inputs([1.0, math.nan], advantage=math.nan, mask=[True, False])
    result = sft(given, LossParameters())
    assert result.losses.tolist() == [1, 0]
    assert gradient(result.losses, given) == [-1, 0]

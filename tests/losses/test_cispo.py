"""CISPO: the weight is bounded, and every token keeps its gradient."""

from __future__ import annotations

import math

import pytest

from agent_r1.losses.base import LossParameters
from agent_r1.losses.registry import objective
from tests.support.objective_inputs import gradient, inputs

CLIP = LossParameters(clip_low=0.2, clip_high=0.28)
cispo = objective("cispo").losses


@pytest.mark.parametrize("advantage", [1.0, -0.5])
def test_weights_are_clamped_and_constant(advantage: float) -> None:
    given = inputs([1.5, 0.5, 1.1], advantage)
    result = cispo(given, CLIP)
    weights = [-slope / advantage for slope in gradient(result.losses, given)]
    assert weights == pytest.approx([1.28, 0.8, 1.1], abs=1e-6)
    expected = [
        -weight * advantage * logprob
        for weight, logprob in zip((1.28, 0.8, 1.1), given.logprobs.tolist(), strict=True)
    ]
    assert result.losses.tolist() == pytest.approx(expected)
    assert result.ratios.tolist() == pytest.approx([1.5, 0.5, 1.1])
    assert result.clipped_low.tolist() == [False, True, False]
    assert result.clipped_high.tolist() == [True, False, False]


def test_within_the_bounds_the_gradient_is_that_of_ppo() -> None:
    given = inputs([0.85, 1.0, 1.2], 0.6)
    ppo = objective("ppo_clip").losses(given, CLIP).losses
    assert gradient(cispo(given, CLIP).losses, given) == pytest.approx(gradient(ppo, given))


def test_p06_nan_in_a_masked_slot_leaves_the_loss_finite_and_its_gradient_zero() -> None:
    for field in ("logprobs", "old_logprobs", "advantages"):
        given = inputs([1.1, 1.0], mask=[True, False])
        poisoned = getattr(given, field).detach().clone()
        poisoned[1] = math.nan
        given = given._replace(**{field: poisoned})
        given = given._replace(logprobs=given.logprobs.detach().requires_grad_())
        result = cispo(given, CLIP)
        assert result.losses.isfinite().all()
        assert gradient(result.losses, given) == pytest.approx([-1.1, 0])

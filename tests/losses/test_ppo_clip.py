"""The clipped surrogate: reference values, gradients, masks."""

from __future__ import annotations

import math

import pytest
import torch

from agent_r1.losses.base import LossParameters, ObjectiveInputs
from agent_r1.losses.registry import objective
from agent_r1.parameters import ParameterError
from tests.support.objective_inputs import inputs

CLIP = LossParameters(clip_low=0.2, clip_high=0.28, dual_clip=3.0)


@pytest.mark.parametrize(
    ("advantage", "ratios", "losses"),
    [(1.0, [1, 1.5, 0.5], [-1, -1.28, -0.5]), (-1.0, [1.5, 0.5, 5], [1.5, 0.8, 3.0])],
)
def test_dual_clip(advantage: float, ratios: list[float], losses: list[float]) -> None:
    result = objective("ppo_clip").losses(inputs(ratios, advantage), CLIP)
    assert result.losses.tolist() == pytest.approx(losses, abs=1e-9)
    assert result.ratios.tolist() == pytest.approx(ratios, abs=1e-9)


def test_without_dual_clip_a_large_ratio_with_negative_advantage_is_unbounded() -> None:
    result = objective("ppo_clip").losses(
        inputs([5], -1.0), CLIP.model_copy(update={"dual_clip": None})
    )
    assert result.losses.tolist() == pytest.approx([5.0])


def test_a_clipped_token_has_no_gradient_and_is_counted() -> None:
    for advantage, ratios, low, high in (
        (1.0, [0.5, 1.0, 1.5], [False, False, False], [False, False, True]),
        (-1.0, [0.5, 1.0, 1.5], [True, False, False], [False, False, False]),
    ):
        given = inputs(ratios, advantage)
        result = objective("ppo_clip").losses(given, CLIP)
        result.losses.sum().backward()
        assert result.clipped_low.tolist() == low
        assert result.clipped_high.tolist() == high
        clipped = (result.clipped_low | result.clipped_high).tolist()
        assert [value == 0 for value in given.logprobs.grad.tolist()] == clipped
        # d(-A r)/d log p = -A r where no bound holds
        for ratio, gradient, gone in zip(ratios, given.logprobs.grad, clipped, strict=True):
            assert gone or gradient == pytest.approx(-advantage * ratio)


def test_gradient_against_finite_differences() -> None:
    given = inputs([0.6, 0.9, 1.0, 1.2, 1.6, 4.0], 0.7)

    def total(logprobs: torch.Tensor) -> torch.Tensor:
        return objective("ppo_clip").losses(given._replace(logprobs=logprobs), CLIP).losses.sum()

    assert torch.autograd.gradcheck(total, (given.logprobs,))


def test_p06_nan_in_a_masked_slot_leaves_the_loss_finite_and_its_gradient_zero() -> None:
    for field in ("logprobs", "old_logprobs", "advantages"):
        given = inputs([1.1, 1.0, 0.9], 1.0, mask=[True, False, True])
        poisoned = getattr(given, field).detach().clone()
        poisoned[1] = math.nan
        given = given._replace(**{field: poisoned})
        given = given._replace(logprobs=given.logprobs.detach().requires_grad_())
        result = objective("ppo_clip").losses(given, CLIP)
        result.losses.sum().backward()
        assert result.losses.tolist() == pytest.approx([-1.1, 0, -0.9])
        assert given.logprobs.grad.tolist() == pytest.approx([-1.1, 0, -0.9])


def test_a_huge_log_ratio_does_not_overflow() -> None:
    old = torch.tensor([-500.0])
    given = ObjectiveInputs(torch.zeros(1), old, torch.tensor([-1.0]), torch.tensor([True]))
    assert objective("ppo_clip").losses(given, CLIP).losses.tolist() == [3.0]


def test_p20_an_unknown_objective_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"unknown objective 'ppo_clp'. Did you mean 'ppo_cl"):
        objective("ppo_clp")

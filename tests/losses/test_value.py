"""The critic's loss: the larger of the clipped and the plain error."""

from __future__ import annotations

import math

import pytest
import torch

from agent_r1.losses.value import value_loss


def given(*rows: tuple[float, float, float]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Values (with a gradient), old values, returns."""
    values, old, returns = torch.tensor(rows, dtype=torch.float64).unbind(1)
    return values.clone().requires_grad_(), old, returns


ROWS = (
    (1.0, 0.9, 2.0),  # within the clip: (1 - 2)² / 2
    (1.5, 1.0, 2.0),  # towards the target, beyond the clip: (1.2 - 2)² / 2, no gradient
    (0.2, 1.0, 2.0),  # away from the target: (0.2 - 2)² / 2, the gradient stays
    (3.0, 1.0, 1.1),  # past the target: (3 - 1.1)² / 2
)


def test_values_and_gradients() -> None:
    values, old, returns = given(*ROWS)
    result = value_loss(values, old, returns, torch.ones(4, dtype=bool), clip=0.2)
    assert result.losses.tolist() == pytest.approx([0.5, 0.32, 1.62, 1.805])
    assert result.clipped.tolist() == [False, True, False, False]
    result.losses.sum().backward()
    assert values.grad.tolist() == pytest.approx([-1.0, 0.0, -1.8, 1.9])


def test_without_a_clip_it_is_half_the_squared_error() -> None:
    values, old, returns = given(*ROWS)
    result = value_loss(values, old, returns, torch.ones(4, dtype=bool), clip=None)
    assert result.losses.tolist() == pytest.approx([0.5, 0.125, 1.62, 1.805])
    assert not result.clipped.any()


def test_the_gradient_against_finite_differences() -> None:
    values, old, returns = given(*ROWS)
    mask = torch.tensor([True, True, False, True])
    assert torch.autograd.gradcheck(
        lambda v: value_loss(v, old, returns, mask, 0.2).losses.sum(), (values,)
    )


@pytest.mark.parametrize("poisoned", [0, 1, 2])
@pytest.mark.parametrize("clip", [None, 0.2])
def test_p06_nan_in_a_masked_slot_leaves_the_loss_finite_and_its_gradient_zero(
    poisoned: int, clip: float | None
) -> None:
    columns = [column.detach() for column in given((1.0, 0.9, 2.0), (1.0, 0.9, 2.0))]
    columns[poisoned][1] = math.nan
    columns[0].requires_grad_()
    result = value_loss(*columns, torch.tensor([True, False]), clip)
    result.losses.sum().backward()
    assert result.losses.tolist() == pytest.approx([0.5, 0])
    assert columns[0].grad.tolist() == pytest.approx([-1, 0])

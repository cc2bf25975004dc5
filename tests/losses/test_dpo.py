"""DPO: the loss of equation 7 from summed log-probs."""

from __future__ import annotations

import math

import pytest
import torch

from agent_r1.losses.base import LossParameters, ObjectiveInputs
from agent_r1.losses.registry import objective
from tests.support.objective_inputs import gradient, inputs

BETA = LossParameters(beta=0.5)
dpo = objective("dpo").losses
REFERENCE = torch.tensor([-1.0, -1.0, -1.2, -0.7, -1.0, -2.0], dtype=torch.float64)


def pairs(*members: tuple[int, int], **more) -> ObjectiveInputs:
    """Trajectories 3 (two tokens), 5 (three) and 8 (one)."""
    ratios = [1.5, 0.8, 1.1, 0.9, 0.7, 2.0]
    return inputs(
        ratios,
        sequence=[3, 3, 5, 5, 5, 8],
        pairs=torch.tensor(members),
        reference_logprobs=REFERENCE,
        **more,
    )


def margin(given: ObjectiveInputs, chosen: int, rejected: int) -> torch.Tensor:
    log_ratio = given.logprobs - REFERENCE
    of = {label: log_ratio[given.trajectory == label].sum() for label in (3, 5, 8)}
    return 0.5 * (of[chosen] - of[rejected])


def test_the_loss_of_a_pair_is_that_of_equation_7() -> None:
    given = pairs((3, 5))._replace(mask=torch.tensor([True] * 5 + [False]))
    result = dpo(given, BETA)
    m = margin(given, 3, 5).item()
    assert result.losses.sum().item() == pytest.approx(math.log1p(math.exp(-m)))
    assert result.losses[5] == 0
    slope = -0.5 / (1 + math.exp(m))  # -beta sigmoid(-m)
    expected = [slope] * 2 + [-slope] * 3 + [0]
    assert gradient(result.losses, given) == pytest.approx(expected)
    assert result.reported["preference_margin"].sum().item() == pytest.approx(m)
    assert result.reported["preference_accuracy"].sum().item() == pytest.approx(float(m > 0))


def test_pairs_add_up_even_if_they_share_a_trajectory() -> None:
    given = pairs((3, 5), (8, 5))
    expected = sum(-torch.nn.functional.logsigmoid(margin(given, chosen, 5)) for chosen in (3, 8))
    result = dpo(given, BETA)
    assert result.losses.sum().item() == pytest.approx(expected.item())
    assert gradient(result.losses, given) == pytest.approx(gradient(expected, given))


def test_at_the_reference_the_loss_of_a_pair_is_log_2() -> None:
    given = pairs((3, 5))._replace(logprobs=REFERENCE.clone().requires_grad_())
    result = dpo(given, BETA)
    assert result.losses.sum().item() == pytest.approx(math.log(2))
    assert result.reported["preference_accuracy"].sum() == 0


def test_p06_nan_in_a_masked_slot_leaves_the_loss_finite_and_its_gradient_zero() -> None:
    mask = torch.tensor([True, True, True, False, True, True])
    clean = dpo(pairs((3, 5), mask=mask.tolist()), BETA).losses.tolist()
    for field in ("logprobs", "old_logprobs", "reference_logprobs"):
        given = pairs((3, 5), mask=mask.tolist())
        poisoned = torch.where(mask, getattr(given, field).detach(), math.nan)
        given = given._replace(**{field: poisoned})
        given = given._replace(logprobs=given.logprobs.detach().requires_grad_())
        result = dpo(given, BETA)
        assert result.losses.tolist() == pytest.approx(clean)
        assert torch.tensor(gradient(result.losses, given)).isfinite().all()
        assert gradient(result.losses, given)[3] == 0

"""GSPO: one ratio per sequence, and the gradient of equation 5."""

from __future__ import annotations

import math

import pytest
import torch

from agent_r1.losses.aggregation import aggregate, token_weights
from agent_r1.losses.base import LossParameters
from agent_r1.losses.registry import objective
from tests.support.objective_inputs import gradient, inputs

CLIP = LossParameters(clip_low=0.05, clip_high=0.1)
gspo = objective("gspo").losses


def test_the_ratio_is_the_geometric_mean_of_the_sequence() -> None:
    result = gspo(inputs([1.2, 0.9, 1.05], sequence=[4, 4, 2]), CLIP)
    assert result.ratios.tolist() == pytest.approx([1.03923, 1.03923, 1.05], abs=1e-5)
    assert result.losses.tolist() == pytest.approx([-1.03923, -1.03923, -1.05], abs=1e-5)


def test_the_bounds_apply_to_the_ratio_of_the_sequence() -> None:
    given = inputs([3.0, 0.34, 1.5, 1.4], [1, 1, 1, 1], sequence=[0, 0, 1, 1])
    result = gspo(given, CLIP)
    assert result.clipped_high.tolist() == [False, False, True, True]
    assert result.losses.tolist()[2:] == pytest.approx([-1.1, -1.1])
    assert [value == 0 for value in gradient(result.losses, given)] == [False, False, True, True]
    low = gspo(inputs([0.8, 0.9], -1.0), CLIP)
    assert low.clipped_low.tolist() == [True, True]
    assert low.losses.tolist() == pytest.approx([0.95, 0.95])


def test_value_and_gradient_are_those_of_equation_5() -> None:
    """(1 / G) Σ min(s A, clip(s) A) with s as a function of all the sequence's log-probs."""
    sequence, advantages = [0, 0, 0, 1, 1, 2], [0.7, 0.7, 0.7, -0.4, -0.4, 1.3]
    given = inputs([1.2, 0.9, 1.01, 0.8, 1.4, 1.3], advantages, sequence=sequence)
    labels = torch.tensor(sequence)
    weights = token_weights(given.mask.numpy(), labels.numpy(), "sequence_mean_token_mean")
    found = aggregate(gspo(given, CLIP).losses, torch.from_numpy(weights))
    expected = 0.0
    for label in range(3):
        own = labels == label
        s = (given.logprobs - given.old_logprobs)[own].mean().exp()
        advantage = given.advantages[own][0]
        expected = expected - torch.minimum(s * advantage, s.clamp(0.95, 1.1) * advantage) / 3
    assert found.item() == pytest.approx(expected.item())
    assert gradient(found, given) == pytest.approx(gradient(expected, given))


def test_p06_a_masked_token_is_not_in_its_sequences_ratio() -> None:
    for field in ("logprobs", "old_logprobs", "advantages"):
        given = inputs([1.2, 5.0, 0.9], mask=[True, False, True])
        poisoned = getattr(given, field).detach().clone()
        poisoned[1] = math.nan
        given = given._replace(**{field: poisoned})
        given = given._replace(logprobs=given.logprobs.detach().requires_grad_())
        result = gspo(given, CLIP)
        assert result.losses.tolist() == pytest.approx([-1.03923, 0, -1.03923], abs=1e-5)
        assert gradient(result.losses, given) == pytest.approx([-1.03923, 0, -1.03923], abs=1e-5)

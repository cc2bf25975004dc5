"""KL estimators: reference values, and which of them can be a loss."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.kl.estimators import kl_estimator
from agent_r1.parameters import ParameterError
from agent_r1.training.update import UpdateParameters

LOGPROBS, REFERENCE = [-1.0, -2.0, -0.5], [-1.5, -1.0, -0.5]


def evaluate(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    logprobs = torch.tensor(LOGPROBS, dtype=torch.float64, requires_grad=True)
    values = kl_estimator(name)(logprobs, torch.tensor(REFERENCE, dtype=torch.float64))
    values.sum().backward()
    return values.detach(), logprobs.grad


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("k1", [0.5, -1, 0]),
        ("k2", [0.125, 0.5, 0]),
        ("k3", [0.106531, 0.718282, 0.0]),
    ],
)
def test_values(name: str, values: list[float]) -> None:
    assert evaluate(name)[0].tolist() == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "gradient"),
    [("k1", [1, 1, 1]), ("k2", [0.5, -1, 0]), ("k3", [0.393469, -1.718282, 0.0])],
)
def test_gradients(name: str, gradient: list[float]) -> None:
    assert evaluate(name)[1].tolist() == pytest.approx(gradient, abs=1e-6)


@given(st.lists(st.tuples(st.floats(-50, 0), st.floats(-50, 0)), min_size=1))
def test_k3_is_never_negative_and_finite(pairs: list[tuple[float, float]]) -> None:
    logprobs, reference = torch.tensor(pairs).unbind(1)
    values = kl_estimator("k3")(logprobs, reference)
    assert (values >= 0).all()
    assert values.isfinite().all()


def test_k3_keeps_its_gradient_where_the_reference_is_tiny() -> None:
    """For a tiny r, k3 is about -log r - 1; the limit at exp(20) must not cut its gradient."""
    logprobs = torch.tensor([-0.5], dtype=torch.float64, requires_grad=True)
    value = kl_estimator("k3")(logprobs, torch.tensor([-40.5], dtype=torch.float64))
    value.sum().backward()
    assert value.item() == pytest.approx(39.0)
    assert logprobs.grad.item() == pytest.approx(1.0)


def test_an_unknown_estimator_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"unknown KL estimator 'k33'. Did you mean 'k3'"):
        kl_estimator("k33")


def test_p23_k1_is_refused_as_a_loss() -> None:
    with pytest.raises(ParameterError, match=r"update.kl_estimator.*use k2 or k3"):
        UpdateParameters.read({"kl_estimator": "k1"}, "update")

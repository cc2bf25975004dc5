"""Inputs of objectives from the ratios they shall have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from agent_r1.losses.base import ObjectiveInputs


def inputs(
    ratios: Sequence[float],
    advantage: float | Sequence[float] = 1.0,
    mask: Sequence[bool] | None = None,
    sequence: Sequence[int] | None = None,
    **more: Any,
) -> ObjectiveInputs:
    """Tokens of log-prob log(ratio) - 1 under the policy and -1 under the old one, in float64."""
    old = torch.full((len(ratios),), -1.0, dtype=torch.float64)
    logprobs = (old + torch.tensor(ratios, dtype=torch.float64).log()).requires_grad_()
    labels = torch.tensor(sequence or [0] * len(ratios))
    return ObjectiveInputs(
        logprobs,
        old,
        torch.as_tensor(advantage, dtype=torch.float64).expand(len(ratios)),
        torch.tensor(mask or [True] * len(ratios)),
        sequence=labels,
        trajectory=labels,
        **more,
    )


def gradient(losses: torch.Tensor, given: ObjectiveInputs) -> list[float]:
    """Of the sum of ``losses`` by each log-prob."""
    return torch.autograd.grad(losses.sum(), given.logprobs, retain_graph=True)[0].tolist()

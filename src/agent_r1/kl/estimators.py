"""Estimators of KL(policy || reference) at sampled tokens, for the loss and for the reward.

J. Schulman, "Approximating KL Divergence" (2020), http://joschu.net/blog/kl-approx.html: with
r = reference / policy at a token sampled from the policy, k1 = -log r, k2 = (log r)² / 2,
k3 = r - 1 - log r. k1 and k3 are unbiased.

1. In a reward the estimates are numbers without a gradient: r - β · k1 (D. Ziegler et al.,
   "Fine-Tuning Language Models from Human Preferences" (2019), https://arxiv.org/abs/1909.08593).
2. In a loss, k1 is refused: its gradient does not depend on the reference.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from agent_r1.parameters import ParameterError, nearest

_LOG_RATIO_LIMIT = 20.0
"""exp(20) ≈ 5e8 nats: larger log-ratios could overflow k3. There is no lower limit: below -20, k3
is about minus the log-ratio, and tokens that are almost impossible under the reference must keep
their gradient."""


def k1(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """log policy - log reference, nats per token; any shape."""
    return logprobs - reference


def k2(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Half the squared log-ratio, nats per token; its gradient is the log-ratio."""
    return 0.5 * (logprobs - reference).square()


def k3(logprobs: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """r - 1 - log r with r = reference / policy, nats per token; never negative."""
    log_ratio = (reference - logprobs).clamp(max=_LOG_RATIO_LIMIT)
    return log_ratio.expm1() - log_ratio


KL_ESTIMATORS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
}

LOSS_ESTIMATORS = ("k2", "k3")
"""Estimators whose gradient lowers the KL."""


def kl_estimator(name: str) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The estimator of this name.

    Raises:
        ParameterError: the name is unknown; the message suggests the nearest one.
    """
    if name not in KL_ESTIMATORS:
        raise ParameterError(f"unknown KL estimator '{name}'.{nearest(name, KL_ESTIMATORS)}")
    return KL_ESTIMATORS[name]

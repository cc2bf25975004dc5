"""Estimators of KL(policy || reference) at sampled tokens, for the KL that is part of the reward.

J. Schulman, "Approximating KL Divergence" (2020): with r = reference / policy at a token sampled
from the policy, k1 = -log r, k2 = (log r)² / 2, k3 = r - 1 - log r. In a reward they are numbers
without a gradient (D. Ziegler et al., "Fine-Tuning Language Models from Human Preferences" (2019):
r - β · k1); the KL in the loss is in `agent_r1.kl.estimators`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_LOG_RATIO_LIMIT = 20.0
"""exp(20) ≈ 5e8 nats: past it k3 only overflows. As in the loss."""


def k1(logprobs: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """log policy - log reference, nats per token; any shape."""
    return logprobs - reference


def k2(logprobs: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Half the squared log-ratio, nats per token."""
    return 0.5 * np.square(logprobs - reference)


def k3(logprobs: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """r - 1 - log r with r = reference / policy, nats per token; never negative."""
    log_ratio = np.minimum(reference - logprobs, _LOG_RATIO_LIMIT)
    return np.expm1(log_ratio) - log_ratio


KL_ESTIMATORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
}

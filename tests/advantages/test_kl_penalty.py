"""KL in the reward."""

from __future__ import annotations

import numpy as np
import pytest

from agent_r1.parameters import ParameterError
from agent_r1.schemas import SchemaError
from tests.support.episodes import advantages, column, episode, turn

POLICY, REFERENCE = [-1.0, -2.0, -0.5], [-1.5, -1.0, -0.5]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("k1", [0.5, -1, 0]), ("k2", [0.125, 0.5, 0]), ("k3", [0.106531, 0.718282, 0])],
)
def test_reference_values_through_the_reward(name: str, expected: list[float]) -> None:
    """Reward 0 and gamma 0: the advantage is the token's own penalty."""
    only = episode("q/0", turn(0.0, 3, policy=POLICY, reference=REFERENCE))
    table = advantages(only, estimator="returns", gamma=0, kl_coef=1, kl_estimator=name)
    assert column(table) == [pytest.approx(np.negative(expected), abs=1e-6)]


@pytest.mark.parametrize("estimator", ["grpo", "returns"])
def test_without_a_reference_the_error_says_what_to_do(estimator: str) -> None:
    message = "'q/0', step 0: reference_logprobs is missing; .* set logprobs.reference to true"
    with pytest.raises(SchemaError, match=message):
        advantages(episode("q/0", turn(1.0)), estimator=estimator, kl_coef=0.1)


def test_an_unknown_estimator_of_the_kl_is_an_error() -> None:
    with pytest.raises(ParameterError, match=r"advantage.kl_estimator.*'k1', 'k2' or 'k3'"):
        advantages(episode("q/0", turn(1.0)), kl_estimator="k4")

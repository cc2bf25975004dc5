"""Plain discounted returns, by token and by step."""

from __future__ import annotations

import pytest

from agent_r1.pipelines.advantage.nodes import compute_advantages
from tests.support.episodes import advantages, column, episode, tables_of, turn

TWO_TURNS = episode("q/0", turn(0.5, 2), turn(1.0, 3))


def test_by_token() -> None:
    table = advantages(TWO_TURNS, estimator="returns", gamma=0.5)
    expected = [0.25 + 0.0625, 0.5 + 0.125, 0.25, 0.5, 1.0]  # token 1 has the first reward
    assert column(table) == [pytest.approx(expected)]
    assert column(table, "returns") == [pytest.approx(expected)]


def test_by_step() -> None:
    table = advantages(TWO_TURNS, estimator="returns", level="step", gamma=0.5)
    assert column(table) == [[1.0, 1.0, 1.0, 1.0, 1.0]]
    assert column(table, "returns") == [[1.0, None, 1.0, None, None]]


@pytest.mark.parametrize("level", ["token", "step"])
def test_p18_the_reward_of_a_step_without_an_action_moves_to_the_last_action(level: str) -> None:
    """The trajectory ends in a step without an action; its penalty must not be lost."""
    ends_without = episode(
        "q/0", turn(0.0, 2), turn(-1.0, 0, action_type="none"), end_reason="context_overflow"
    )
    assert column(advantages(ends_without, estimator="returns", level=level)) == [[-1.0, -1.0]]


@pytest.mark.parametrize("level", ["token", "step"])
def test_p21_the_return_of_the_first_token_is_the_trajectory_s_reward(level: str) -> None:
    many = episode("q/0", turn(0.25), turn(0.0), turn(0.5), turn(1.0))
    assert column(advantages(many, estimator="returns", level=level))[0][0] == 1.75


def test_a_reward_does_not_reach_the_next_trajectory() -> None:
    table = advantages(
        episode("q/0", turn(1.0, 2)),
        episode("q/1", turn(None, 2), scored=False),
        episode("q/2", turn(-1.0, 1)),
        estimator="returns",
    )
    assert column(table) == [[1, 1], [0, 0], [-1]]
    assert column(table, "returns") == [[1, 1], [None, None], [-1]]
    assert column(table, "loss_mask") == [[True, True], [False, False], [True]]


def test_a_trajectory_scored_as_a_whole_has_its_reward_on_its_last_step() -> None:
    rollouts, rewards, logprobs = tables_of(TWO_TURNS)
    table = compute_advantages(
        rollouts, rewards.drop(columns="reward"), logprobs, {"estimator": "returns", "gamma": 0.5}
    )
    assert column(table) == [pytest.approx([1.5 * 0.5**k for k in (4, 3, 2, 1, 0)])]

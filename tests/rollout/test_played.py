"""A batch in which nothing could be played is refused. A part of it is only a warning."""

from __future__ import annotations

import json
import logging

import pandas as pd
import pytest

from agent_r1.parameters import ParameterError
from agent_r1.rollout import BrokenEnvironmentError, RolloutParameters, check_played

WINDOW = RolloutParameters(on_overflow="window", max_context_tokens=80, max_tokens_per_step=64)


def batch(*ends: tuple[str | None, dict]) -> pd.DataFrame:
    """A table with one row per (end reason, info)."""
    return pd.DataFrame(
        {
            "trajectory_id": [f"t{number}" for number in range(len(ends))],
            "environment": "math",
            "end_reason": [end for end, _ in ends],
            "info": [json.dumps(info) for _, info in ends],
        }
    )


def too_long(tokens: int) -> tuple[str, dict]:
    return "prompt_too_long", {"prompt_tokens": tokens, "max_context_tokens": 80}


def test_prompts_that_are_all_too_long_name_the_parameters():
    with pytest.raises(ParameterError) as caught:
        check_played(batch(too_long(30), too_long(21)), WINDOW)
    assert str(caught.value) == (
        "no prompt fits into the context: the shortest has 21 tokens, but "
        "rollout.max_context_tokens is 80, of which max_tokens_per_step (64) are kept free"
    )


def test_some_prompts_that_are_too_long_are_a_warning(caplog):
    parameters = RolloutParameters(max_context_tokens=80)
    rows = batch(too_long(99), (None, {}), ("answered", {}), ("infrastructure", {"failure": "x"}))
    with caplog.at_level(logging.WARNING):
        check_played(rows, parameters)
    (record,) = caplog.records
    assert record.getMessage() == (
        "1 of 3 prompts do not fit into the context (the longest has 99 tokens, but "
        "rollout.max_context_tokens is 80); these trajectories have no action"
    )


def test_an_environment_that_always_fails_is_an_error_with_the_reason():
    rows = batch(("infrastructure", {"failure": "no sandbox"}), ("infrastructure", {}))
    with pytest.raises(BrokenEnvironmentError, match=r"'math' failed in all 2 .* t0: no sandbox$"):
        check_played(rows, WINDOW)


def test_a_tool_that_is_down_for_all_is_data_in_training_and_an_error_in_evaluation(caplog):
    down = ("infrastructure", {"failure": "it is down", "unavailable_tool": "math.calculator"})
    with caplog.at_level(logging.WARNING):
        check_played(batch(down, down), WINDOW, outages_are_data=True)
    assert "a tool was down for all 2 trajectories" in caplog.text
    with pytest.raises(BrokenEnvironmentError, match="it is down"):
        check_played(batch(down, down), WINDOW)
    other = ("infrastructure", {"failure": "no sandbox"})
    with pytest.raises(BrokenEnvironmentError, match="no sandbox"):
        check_played(batch(other, down), WINDOW, outages_are_data=True)


def test_a_batch_that_was_played_is_accepted(caplog):
    check_played(batch((None, {}), ("answered", {}), ("infrastructure", {})), WINDOW)
    check_played(batch(), WINDOW)
    assert not caplog.records

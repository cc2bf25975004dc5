"""The visible context: the tokens that the policy saw."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.mdp import visible_context

STREAM = list(range(10))


def test_the_whole_stream_is_visible_before_any_window():
    assert visible_context(STREAM, prefix=3, start=0) == STREAM


def test_p09_a_window_keeps_the_task():
    assert visible_context(STREAM, prefix=3, start=7) == [0, 1, 2, 7, 8, 9]


def test_a_start_inside_the_prefix_hides_nothing():
    assert visible_context(STREAM, prefix=5, start=2) == STREAM


def test_drops_are_half_open_pairs_and_may_be_outside_the_prefix():
    assert visible_context(STREAM, 2, 0, [4, 6, 8, 9]) == [0, 1, 2, 3, 6, 7, 9]


def test_drops_and_window_combine():
    assert visible_context(STREAM, 2, 5, [6, 8]) == [0, 1, 5, 8, 9]


@pytest.mark.parametrize(
    ("prefix", "start", "drops"), [(-1, 0, None), (0, -1, None), (0, 0, [1]), (0, 0, [3, 2])]
)
def test_impossible_windows_are_refused(prefix, start, drops):
    with pytest.raises(ValueError, match=r"prefix|drop"):
        visible_context(STREAM, prefix, start, drops)


@given(st.lists(st.integers()), st.integers(0, 12), st.integers(0, 12))
def test_a_window_is_prefix_plus_tail(stream, prefix, start):
    seen = visible_context(stream, prefix, start)
    assert seen == stream[:prefix] + stream[max(prefix, start) :]

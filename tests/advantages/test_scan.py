"""Discounted sums equal a loop over every segment."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.advantages import scan
from agent_r1.advantages.scan import discounted_sums


def by_loop(values: np.ndarray, offsets: np.ndarray, discount: float) -> list[float]:
    sums = values.tolist()
    for begin, end in pairwise(offsets.tolist()):
        for index in range(end - 2, begin - 1, -1):
            sums[index] += discount * sums[index + 1]
    return sums


@pytest.mark.parametrize("block", [1, 2, 4096])
@given(
    lengths=st.lists(st.integers(0, 9), max_size=12),
    discount=st.sampled_from([0.0, 0.72, 0.99, 1.0]),
    seed=st.integers(0, 99),
)
def test_equals_a_loop_bit_for_bit(
    block: int, lengths: list[int], discount: float, seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_BLOCK", block)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        values = np.random.default_rng(seed).normal(size=offsets[-1])
        before = values.copy()
        found = discounted_sums(values, offsets, discount)
    assert found.tolist() == by_loop(values, offsets, discount)
    assert np.array_equal(values, before)

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agent_r1.engines.sampling import Choice, sample, uniforms


def choice(rows: int, temperature=1.0, top_p=1.0, top_k=0, min_p=0.0) -> Choice:
    return Choice(
        torch.full((rows,), temperature, dtype=torch.float32),
        torch.full((rows,), top_p, dtype=torch.float64),
        torch.full((rows,), top_k, dtype=torch.int64),
        torch.full((rows,), min_p, dtype=torch.float64),
    )


def drawn(probabilities: list[float], points: list[float], **how) -> list[int]:
    logits = torch.tensor([probabilities]).log().repeat(len(points), 1)
    tokens, _ = sample(
        logits, choice(len(points), **how), torch.tensor(points, dtype=torch.float64)
    )
    return tokens.tolist()


def test_the_draw_is_the_inverse_of_the_cumulative_distribution():
    assert drawn([0.5, 0.25, 0.25], [0.0, 0.49, 0.51, 0.74, 0.76, 0.999]) == [0, 0, 1, 1, 2, 2]


def test_the_largest_uniform_never_draws_an_impossible_token():
    assert drawn([0.5, 0.5, 0.0], [1 - 2**-53]) == [1]
    assert drawn([0.0, 0.5, 0.5], [0.0]) == [1]


def test_temperature_sharpens_before_the_draw():
    # T = 1/2 squares the odds: 2:1 becomes 4:1.
    assert drawn([2 / 3, 1 / 3], [0.79, 0.81], temperature=0.5) == [0, 1]


def test_greedy_takes_the_mode_and_scores_it_at_temperature_one():
    logits = torch.tensor([[0.2, 0.5, 0.3]]).log()
    tokens, logprobs = sample(logits, choice(1, temperature=0.0), torch.tensor([0.99]).double())
    assert tokens.tolist() == [1]
    assert logprobs.item() == pytest.approx(math.log(0.5), abs=1e-6)


@pytest.mark.parametrize(
    ("how", "kept"),
    [
        ({"top_k": 2}, {0, 2}),
        ({"top_p": 0.6}, {0, 2}),  # 0.4 is not enough, 0.4 + 0.3 is
        ({"top_p": 0.39}, {0}),
        ({"top_p": 1e-9}, {0}),
        ({"min_p": 0.6}, {0, 2}),  # at least 0.24
        ({"top_k": 3, "top_p": 0.75}, {0, 2}),  # two of the tokens that top-k keeps hold 7/9
        ({"top_k": 3, "top_p": 0.8}, {0, 2, 3}),
        ({}, {0, 1, 2, 3}),
    ],
)
def test_filters_keep(how, kept):
    points = [i / 200 for i in range(200)]
    assert set(drawn([0.4, 0.1, 0.3, 0.2], points, **how)) == kept


def test_filters_leave_the_logprob_alone():
    logits = torch.tensor([[0.4, 0.1, 0.3, 0.2]]).log()
    for how in ({"top_k": 1}, {"top_p": 0.3}, {"min_p": 0.9}):
        _, logprobs = sample(logits, choice(1, **how), torch.tensor([0.5]).double())
        assert logprobs.item() == pytest.approx(math.log(0.4), abs=1e-6)


def test_each_row_is_sampled_with_its_own_parameters():
    logits = torch.tensor([[0.4, 0.1, 0.3, 0.2]]).log().repeat(3, 1)
    how = Choice(
        torch.tensor([1.0, 0.0, 1.0]),
        torch.tensor([1.0, 1.0, 1.0]).double(),
        torch.tensor([0, 0, 1]),
        torch.zeros(3).double(),
    )
    tokens, _ = sample(logits, how, torch.full((3,), 0.95, dtype=torch.float64))
    assert tokens.tolist() == [3, 0, 0]


def test_uniforms_are_those_of_splitmix64():
    # Reference: SplitMix64 started at 0 gives 0xe220a8397b1dcdaf, then 0x6e789e6aa1b965f4.
    # Seeds are mixed once before they start a stream; mix(0) is 0.
    expected = [(value >> 11) * 2.0**-53 for value in (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4)]
    assert uniforms(np.array([0]), 2).tolist() == [expected]


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5), st.integers(1, 40))
def test_a_draw_depends_only_on_its_seed_and_index(seeds, count):
    together = uniforms(np.array(seeds), 40)
    for row, seed in enumerate(seeds):
        assert np.array_equal(uniforms(np.array([seed]), count)[0], together[row, :count])
    assert ((together >= 0) & (together < 1)).all()


def test_uniforms_of_neighbouring_seeds_look_independent():
    draws = uniforms(np.arange(2000), 20)
    assert abs(draws.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]) < 0.08
    assert abs(np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]) < 0.08

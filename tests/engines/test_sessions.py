"""Forked, continued and windowed sessions give the same as a fresh one over the same tokens."""

from __future__ import annotations

import pytest

from tests.support.generations import APPROX, PROMPTS, generate, reference_logprobs, sampling


def test_forks_continue_like_the_original_session(policy, engine):
    generate(engine, {"prompt": PROMPTS["s4"]}, sampling(0))
    engine.fork("prompt", ["a", "b", "c"])
    seeds = {name: sampling(seed=seed) for name, seed in zip("abc", (7, 7, 8), strict=True)}
    result = generate(engine, {"a": [], "b": [], "c": []}, seeds)
    assert result["a"].token_ids == result["b"].token_ids != result["c"].token_ids
    for generation in result.values():
        assert generation.cached_tokens == len(PROMPTS["s4"]) - 1
        expected = reference_logprobs(policy, PROMPTS["s4"], generation.token_ids)
        assert generation.logprobs == pytest.approx(expected, **APPROX)
    # A fork is a copy: later changes of one do not affect the others.
    later = generate(engine, {"a": [9, 9], "c": [8]}, sampling())
    context = PROMPTS["s4"] + result["c"].token_ids + [8]
    expected = reference_logprobs(policy, context, later["c"].token_ids)
    assert later["c"].logprobs == pytest.approx(expected, **APPROX)


def test_earlier_turns_are_not_computed_again(engine):
    first = generate(engine, {"a": PROMPTS["s3"]}, sampling())["a"]
    assert (first.prompt_tokens, first.cached_tokens) == (len(PROMPTS["s3"]), 0)
    second = generate(engine, {"a": [5, 6, 7]}, sampling())["a"]
    known = len(PROMPTS["s3"]) + len(first.token_ids)
    assert (second.prompt_tokens, second.cached_tokens) == (known + 3, known - 1)


@pytest.mark.parametrize(
    ("prefix", "start", "drops"),
    [(4, 12, None), (4, 0, [6, 9]), (0, 20, None), (4, 12, [14, 16, 20, 22]), (50, 0, None)],
)
def test_a_windowed_session_equals_a_fresh_one_over_the_visible_tokens(
    start_engine, prefix, start, drops
):
    engine = start_engine()
    first = generate(engine, {"a": PROMPTS["s5"]}, sampling())["a"]
    engine.window("a", prefix, start, drops)
    stream = PROMPTS["s5"] + first.token_ids
    gone = set(range(prefix, max(prefix, start)))
    for begin, end in zip((drops or [])[::2], (drops or [])[1::2], strict=True):
        gone |= set(range(begin, end))
    visible = [token for position, token in enumerate(stream) if position not in gone]

    windowed = generate(engine, {"a": [9, 10]}, sampling())["a"]
    fresh = generate(start_engine(), {"a": [*visible, 9, 10]}, sampling())["a"]
    assert windowed.prompt_tokens == len(visible) + 2
    assert windowed.token_ids == fresh.token_ids
    assert windowed.logprobs == pytest.approx(fresh.logprobs, **APPROX)
    kept = min(gone, default=len(stream))
    assert windowed.cached_tokens >= min(kept, len(stream) - 1)


def test_window_positions_are_positions_in_the_stream(start_engine):
    engine = start_engine()
    first = generate(engine, {"a": PROMPTS["s4"]}, sampling())["a"]
    engine.window("a", 3, 10)
    second = generate(engine, {"a": [9, 10]}, sampling())["a"]
    engine.window("a", 3, 20)
    third = generate(engine, {"a": [11]}, sampling())["a"]
    stream = PROMPTS["s4"] + first.token_ids + [9, 10] + second.token_ids + [11]
    fresh = generate(start_engine(), {"a": stream[:3] + stream[20:]}, sampling())["a"]
    assert third.token_ids == fresh.token_ids
    assert third.logprobs == pytest.approx(fresh.logprobs, **APPROX)

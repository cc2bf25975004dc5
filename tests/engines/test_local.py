"""These tests pin four properties:

1. Log-probs equal those of a plain forward pass, whatever was cached, forked, windowed or batched.
2. An action is a function of its context, seed and policy. It does not depend on the other rows of
   the batch, or on whether the engine is cold or warm.
3. Nothing that old weights computed is used with new weights.
4. Misuse is an error with a clear message.
"""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from agent_r1.engines.local import EngineError, LocalEngine
from tests.support.generations import (
    APPROX,
    PROMPTS,
    generate,
    reference_logprobs,
    reference_scores,
    sampling,
)
from tests.support.tiny_models import CACHED, ENGINE_VOCABULARY, engine_policy


def play(engine: LocalEngine, turns: int = 3, **how) -> dict[str, tuple[list[int], list[float]]]:
    """Play several turns of several sessions; the streams and log-probs of the last actions."""
    streams, last = {name: [] for name in PROMPTS}, {}
    for turn in range(turns):
        new = {name: prompt[: len(prompt) // (turn + 1)] for name, prompt in PROMPTS.items()}
        last = generate(engine, new, sampling(seed=turn, **how))
        for name, generation in last.items():
            streams[name] += new[name] + generation.token_ids
    return {name: (streams[name], last[name].logprobs) for name in streams}


@pytest.mark.parametrize("architecture", CACHED)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs_are_those_of_a_plain_forward_pass(tmp_path, architecture, temperature):
    policy = engine_policy(tmp_path, architecture)
    engine = LocalEngine(threads=1)
    engine.load(policy, "v0")
    for stream, logprobs in play(engine, temperature=temperature).values():
        n = len(logprobs)
        expected = reference_logprobs(policy, stream[:-n], stream[-n:], temperature)
        assert logprobs == pytest.approx(expected, **APPROX)


def test_greedy_is_the_argmax_scored_at_temperature_one(policy, engine):
    for name, generation in generate(engine, PROMPTS, sampling(temperature=0.0)).items():
        scores = reference_scores(policy, PROMPTS[name], generation.token_ids)
        assert generation.token_ids == scores.argmax(-1).tolist()
        assert generation.logprobs == pytest.approx(scores.max(-1).values.tolist(), **APPROX)


@pytest.mark.parametrize("max_batch", [1, 2, 4, 64])
def test_an_action_does_not_depend_on_other_rows(start_engine, max_batch):
    expected = play(start_engine())
    found = play(start_engine(max_batch=max_batch))
    for name, (stream, logprobs) in expected.items():
        assert found[name][0] == stream
        assert found[name][1] == pytest.approx(logprobs, **APPROX)


def test_late_requests_join_the_batch_and_get_equal_actions(start_engine):
    expected = generate(start_engine(), PROMPTS, sampling(max_tokens=30))

    async def trickle(engine: LocalEngine):
        tasks = []
        for name, prompt in PROMPTS.items():
            tasks.append(asyncio.create_task(engine.generate(name, prompt, sampling(30))))
            for _ in range(3):
                await asyncio.sleep(0)
        return await asyncio.gather(*tasks)

    found = asyncio.run(trickle(start_engine(max_batch=3)))
    for generation, name in zip(found, PROMPTS, strict=True):
        assert generation.token_ids == expected[name].token_ids
        assert generation.logprobs == pytest.approx(expected[name].logprobs, **APPROX)


def test_a_cold_and_a_warm_engine_give_equal_bytes(start_engine):
    cold, warm = start_engine(), start_engine()
    generate(warm, {"other": list(range(4, 60)), "more": [5]}, sampling(40))
    expected = play(cold)
    assert play(warm) == expected
    for name in PROMPTS:
        warm.close(name)
    assert play(warm) == expected


def test_order_of_requests_does_not_matter(start_engine):
    forward = generate(start_engine(), PROMPTS, sampling())
    backward = generate(start_engine(), dict(reversed(PROMPTS.items())), sampling())
    for name in PROMPTS:
        assert forward[name].token_ids == backward[name].token_ids
        assert forward[name].logprobs == backward[name].logprobs


def test_p37_requests_of_a_tick_are_one_batch_even_while_the_worker_becomes_idle(
    engine, monkeypatch
):
    """The worker looks for work while the requests of a tick arrive one after the other."""
    admitted, resting = [], threading.Event()
    compact, admit = engine._batch.compact, engine._batch.admit

    def slow_compact() -> None:
        if admitted:  # the first round is over
            resting.wait(10)
        compact()

    def watched_admit(requests) -> None:
        admitted.append(len(requests))
        admit(requests)

    monkeypatch.setattr(engine._batch, "compact", slow_compact)
    monkeypatch.setattr(engine._batch, "admit", watched_admit)

    async def ask(name: str, tokens: list[int]):
        return await engine.generate(name, tokens, sampling(max_tokens=1))

    async def rounds() -> None:
        await asyncio.gather(*(ask(name, prompt) for name, prompt in PROMPTS.items()))
        second = [asyncio.ensure_future(ask(name, [1, 2])) for name in PROMPTS]
        queue = engine._queue

        def queue_slowly(*arguments):
            request = queue(*arguments)
            resting.set()
            time.sleep(0.05)
            return request

        monkeypatch.setattr(engine, "_queue", queue_slowly)
        await asyncio.gather(*second)

    asyncio.run(rounds())
    assert admitted == [len(PROMPTS)] * 2


def test_a_stop_token_ends_the_action_and_belongs_to_it(engine):
    everything = tuple(range(ENGINE_VOCABULARY))
    result = generate(engine, PROMPTS, sampling(stop_token_ids=everything))
    for generation in result.values():
        assert len(generation.token_ids) == 1
        assert generation.finish_reason == "stop"


def test_p02_a_cut_action_gets_no_stop_token(engine):
    result = generate(engine, PROMPTS, sampling(max_tokens=5, stop_token_ids=(ENGINE_VOCABULARY,)))
    for generation in result.values():
        assert len(generation.token_ids) == 5
        assert generation.finish_reason == "length"


def test_a_stop_token_at_the_end_of_the_budget_is_a_stop(engine):
    first = generate(engine, {"a": PROMPTS["s1"]}, sampling(max_tokens=4, stop_token_ids=()))["a"]
    stop = first.token_ids[-1]
    n = first.token_ids.index(stop) + 1
    again = generate(engine, {"b": PROMPTS["s1"]}, sampling(max_tokens=n, stop_token_ids=(stop,)))[
        "b"
    ]
    assert again.token_ids == first.token_ids[:n]
    assert again.finish_reason == "stop"


def test_p10_the_budget_limits_the_generation_itself(engine):
    """Each row has its own budget. Longer actions continue shorter ones: nothing is cut
    afterwards."""
    budgets = {"short": sampling(3, stop_token_ids=()), "long": sampling(9, stop_token_ids=())}
    result = generate(engine, dict.fromkeys(budgets, PROMPTS["s2"]), budgets)
    short, long = result["short"], result["long"]
    assert (len(short.token_ids), len(long.token_ids)) == (3, 9)
    assert long.token_ids[:3] == short.token_ids
    assert short.logprobs == pytest.approx(long.logprobs[:3], **APPROX)


def test_p26_new_weights_use_nothing_that_old_weights_computed(start_engine, other_policy):
    engine = start_engine()
    generate(engine, PROMPTS, sampling())
    engine.load(other_policy, "v1")
    assert engine.weight_version == "v1"
    for name, prompt in PROMPTS.items():
        generation = generate(engine, {name: prompt}, sampling())[name]
        assert generation.cached_tokens == 0
        expected = reference_logprobs(other_policy, prompt, generation.token_ids)
        assert generation.logprobs == pytest.approx(expected, **APPROX)


def test_loading_the_same_version_again_keeps_the_sessions(policy, engine):
    generate(engine, {"a": PROMPTS["s2"]}, sampling())
    engine.load(policy, "v0")
    assert generate(engine, {"a": [4]}, sampling())["a"].cached_tokens > 0


def test_a_closed_session_starts_anew(engine):
    generate(engine, {"a": PROMPTS["s2"]}, sampling())
    engine.close("a")
    engine.close("never opened")
    generation = generate(engine, {"a": PROMPTS["s2"]}, sampling())["a"]
    assert (generation.cached_tokens, generation.prompt_tokens) == (0, len(PROMPTS["s2"]))


def test_closing_a_session_while_it_generates_does_not_disturb_others(start_engine):
    expected = generate(start_engine(), PROMPTS, sampling(20))
    engine = start_engine()

    async def run():
        tasks = [
            asyncio.create_task(engine.generate(n, p, sampling(20))) for n, p in PROMPTS.items()
        ]
        await asyncio.sleep(0)
        engine.close("s3")
        return await asyncio.gather(*tasks)

    for generation, name in zip(asyncio.run(run()), PROMPTS, strict=True):
        assert generation.token_ids == expected[name].token_ids
    assert generate(engine, {"s3": [5]}, sampling())["s3"].prompt_tokens == 1


def test_misuse_is_an_error(policy, engine):
    with pytest.raises(EngineError, match="no weights"):
        generate(LocalEngine(), {"a": [4]}, sampling())
    with pytest.raises(ValueError, match="no tokens to continue"):
        generate(engine, {"a": []}, sampling())
    with pytest.raises(ValueError, match=r"a token id is not in \[0, 64\)"):
        generate(engine, {"a": [4, ENGINE_VOCABULARY]}, sampling())
    with pytest.raises(ValueError, match="max_position_embeddings"):
        generate(engine, {"a": [4] * 250}, sampling(7))
    with pytest.raises(EngineError, match="unknown stream 'nobody'"):
        engine.fork("nobody", ["a"])
    generate(engine, {"a": [4]}, sampling(0))
    with pytest.raises(EngineError, match="names must be new"):
        engine.fork("a", ["a"])

    async def twice():
        await asyncio.gather(
            engine.generate("a", [5], sampling()), engine.generate("a", [6], sampling())
        )

    with pytest.raises(EngineError, match="generating already"):
        asyncio.run(twice())


def test_a_fault_in_the_model_reaches_all_waiting_tasks_and_the_engine_recovers(
    policy, engine, monkeypatch
):
    def broken(*args, **kwargs):
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(engine._model, "forward", broken)

        async def run():
            return await asyncio.gather(
                *(engine.generate(n, p, sampling()) for n, p in PROMPTS.items()),
                return_exceptions=True,
            )

        errors = asyncio.run(run())
    assert [str(error) for error in errors] == ["out of memory"] * len(PROMPTS)
    generation = generate(engine, {"s1": PROMPTS["s1"]}, sampling())["s1"]
    expected = reference_logprobs(policy, PROMPTS["s1"], generation.token_ids)
    assert generation.logprobs == pytest.approx(expected, **APPROX)


def test_the_event_loop_runs_while_the_model_computes(engine):
    """Tools and their time limits must not wait for the engine."""

    async def run() -> int:
        generation = asyncio.create_task(engine.generate("a", PROMPTS["s5"], sampling(60)))
        ticks = 0
        while not generation.done():
            await asyncio.sleep(0)
            ticks += 1
        return ticks

    assert asyncio.run(run()) > 60


def test_top_k_one_is_greedy_at_any_temperature(engine):
    greedy = generate(engine, {"a": PROMPTS["s3"]}, sampling(temperature=0.0))["a"]
    narrow = generate(engine, {"b": PROMPTS["s3"]}, sampling(temperature=1.0, top_k=1))["b"]
    assert narrow.token_ids == greedy.token_ids
    assert narrow.logprobs == greedy.logprobs

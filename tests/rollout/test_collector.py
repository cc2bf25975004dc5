"""The loop with an engine without a model. The names of the tests say what they pin.

Invariants of the tables are in `tests.support.invariants.check_tables`.
"""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.engines.scripted import ScriptedEngine, ScriptError
from agent_r1.rollout import StaleWeightsError, TrajectoryRequest
from agent_r1.tools import tool
from tests.support.invariants import check_tables
from tests.support.toy_world import (
    ANSWER,
    CALL,
    MALFORMED,
    STOPS,
    FakeEngine,
    ToyEnv,
    parameters,
    requests,
    run,
    scripted,
    task,
)


@settings(max_examples=40)
@given(
    st.builds(
        dict,
        max_steps=st.sampled_from([1, 2, 3, 4, 5, 40]),
        max_tokens_per_step=st.integers(1, 10),
        max_context_tokens=st.integers(11, 120),
        on_overflow=st.sampled_from(["truncate", "end", "window"]),
        window_keep=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        concurrency=st.integers(1, 20),
        deterministic=st.booleans(),
    ),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_tables_hold_their_invariants(limits, count, samples):
    rollouts, timings = run(wanted=requests(count, samples), **limits)
    check_tables(rollouts, timings, parameters(**limits), STOPS)
    assert rollouts["trajectory_id"].nunique() == count * samples


def test_no_requests_give_empty_tables():
    rollouts, timings = run(wanted=[])
    assert (len(rollouts), len(timings)) == (0, 0)
    check_tables(rollouts, timings, parameters(), STOPS)


def test_p01_a_prompt_starts_with_the_previous_one_and_the_sampled_ids():
    """Sampled ids are never decoded and encoded again: these have no text at all."""
    engine = FakeEngine()
    seen: dict[str, list[list[int]]] = {}
    generate = engine.generate

    async def note(session, new, how):
        generation = await generate(session, new, how)
        if how.max_tokens:
            seen.setdefault(session, []).append(list(engine.sessions[session]))
        return generation

    engine.generate = note
    rollouts, _ = run(engine)
    for name, steps in rollouts.groupby("trajectory_id"):
        stream: list[int] = []
        for row, known in zip(steps.to_dict("records"), seen[name], strict=True):
            stream += [*row["context_token_ids"], *row["action_token_ids"]]
            assert known == stream


def test_p02_the_template_adds_only_what_a_turn_lacks():
    """The stop token of a turn belongs to the action. The context never repeats or contains it."""
    rollouts, _ = scripted(CALL, ANSWER)
    assert list(rollouts["action_token_ids"][0]) == [*CALL, STOPS[0]]
    assert rollouts["context_token_ids"][1][0] not in STOPS


def test_p03_only_sampled_tokens_are_actions():
    rollouts, _ = scripted(CALL, MALFORMED, ANSWER)
    actions = [list(ids) for ids in rollouts["action_token_ids"]]
    assert actions == [[*one, STOPS[0]] for one in (CALL, MALFORMED, ANSWER)]
    assert [len(one) for one in rollouts["action_logprobs"]] == [2, 2, 2]


def test_p10_a_cut_call_is_never_parsed_or_executed():
    engine = FakeEngine(lengths=(30, 30))
    rollouts, _ = run(engine, max_tokens_per_step=5)
    assert set(rollouts["action_type"]) == {"cut"}
    assert set(rollouts["end_reason"]) == {"token_budget"}
    assert set(rollouts["tool_results"]) == {"[]"}


def test_a_failed_reset_is_a_row_and_the_others_continue():
    broken = TrajectoryRequest("broken", task(9, prompt="broken"), "broken", 0, 1.0, 0)
    rollouts, timings = run(wanted=[*requests(2, 2), broken])
    check_tables(rollouts, timings, parameters(), STOPS)
    row = rollouts[rollouts["trajectory_id"] == "broken"].to_dict("records")[0]
    assert (row["action_type"], row["end_reason"]) == ("none", "infrastructure")
    assert json.loads(row["info"]) == {"failure": "the simulator is down"}
    assert rollouts["trajectory_id"].nunique() == 5


def test_p08_a_prompt_that_is_too_long_is_a_row_and_the_others_continue():
    long = TrajectoryRequest("long", task(9, prompt="x" * 500), "long", 0, 1.0, 0)
    rollouts, timings = run(wanted=[*requests(2, 2), long])
    check_tables(rollouts, timings, parameters(), STOPS)
    row = rollouts[rollouts["trajectory_id"] == "long"].to_dict("records")[0]
    assert (row["action_type"], row["end_reason"]) == ("none", "prompt_too_long")
    assert rollouts["trajectory_id"].nunique() == 5


def test_a_group_shares_its_prompt():
    engine = FakeEngine()
    run(engine, requests(4, 3))
    assert engine.prompts_computed == 4
    engine = FakeEngine()
    run(engine, requests(4, 1))
    assert engine.prompts_computed == 0  # nothing to share


def test_every_session_is_closed():
    engine = FakeEngine()
    run(engine)
    assert engine.sessions == {}


@pytest.mark.parametrize("deterministic", [True, False])
def test_at_most_concurrency_trajectories_are_live(deterministic):
    engine = FakeEngine()
    run(engine, requests(6, 4), concurrency=5, deterministic=deterministic)
    assert 1 < engine.most <= 5


def test_batches_do_not_depend_on_how_long_tools_take(monkeypatch):
    def batches(seed: int | None):
        monkeypatch.setattr(ToyEnv, "jitter", None if seed is None else random.Random(seed))
        engine = FakeEngine()
        run(engine, requests(4, 4), concurrency=10)
        return engine.batches

    expected = batches(None)
    assert [batches(seed) for seed in range(4)] == [expected] * 4
    assert max(len(batch) for batch in expected) == 10
    assert all(batch == sorted(batch) for batch in expected)


def test_without_determinism_trajectories_do_not_wait_for_the_slowest():
    """One tool waits for another trajectory to end: with a turnstile this would deadlock."""
    ended = asyncio.Event()

    class Patient(ToyEnv):
        @tool
        async def echo(self, word: str) -> str:
            """Wait.

            Args:
                word: any.
            """
            await ended.wait()
            return word

    wanted = requests(2, 1)
    slow, quick = (one.trajectory_id for one in wanted)
    script = {slow: [[14, 3], [13, 3]], quick: [[12, 3], [12, 3], [13, 3]]}

    def progress(done, total, tokens):
        if done:
            ended.set()

    rollouts, _ = run(ScriptedEngine(script), wanted, Patient, progress, deterministic=False)
    assert set(rollouts["end_reason"].dropna()) == {"answered"}


def test_progress_ends_with_all_done_and_all_tokens_counted():
    calls = []
    rollouts, _ = run(on_progress=lambda *numbers: calls.append(numbers))
    assert calls[-1] == (12, 12, rollouts["completion_tokens"].sum())
    assert calls == sorted(calls)


def test_weights_that_change_during_a_collection_are_an_error():
    engine = FakeEngine()

    def progress(done, total, tokens):
        if tokens:
            engine.weight_version = "other"

    with pytest.raises(StaleWeightsError, match="'fake'"):
        run(engine, on_progress=progress)
    assert engine.sessions == {}


def test_a_fault_of_the_engine_ends_everything_and_is_raised_unchanged():
    wanted = requests(2, 2)
    with pytest.raises(ScriptError, match="ends after 0 actions"):
        run(ScriptedEngine({}), wanted)


def test_trajectory_ids_must_be_distinct():
    with pytest.raises(ValueError, match="'iter_00001/task00/0' is requested more than once"):
        run(wanted=requests(1, 1) * 2)


def test_it_also_runs_inside_a_running_loop():
    async def notebook():
        return run()

    (inside, _), (outside, _) = asyncio.run(notebook()), run()
    assert inside.equals(outside)

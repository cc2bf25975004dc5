"""The loop with the local engine and a random model: bytes and log-probs."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from agent_r1.engines.local import LocalEngine
from agent_r1.rollout import collect
from tests.support.generations import reference_logprobs
from tests.support.invariants import check_tables
from tests.support.tiny_models import engine_policy
from tests.support.toy_world import STOPS, ToyChat, ToyEnv, parameters, requests

LIMITS = parameters(max_steps=4, max_tokens_per_step=30, concurrency=7)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    # With seed 0, one draw is so close to the border of two tokens that rounding decides it.
    return engine_policy(tmp_path_factory.mktemp("policy"), seed=2)


@pytest.fixture
def engine(policy):
    engine = LocalEngine(threads=1)
    engine.load(policy, "v0")
    return engine


def run(engine, wanted=None, limits=LIMITS):
    return collect(engine, ToyChat(), ToyEnv, wanted or requests(4, 4), limits)


def test_tables_hold_their_invariants(engine):
    rollouts, timings = run(engine)
    check_tables(rollouts, timings, LIMITS, STOPS)
    assert rollouts["step_index"].max() > 0
    later = timings[timings["step_index"] > 0]
    assert (later["cached_tokens"] > 0).all()


def test_logprobs_are_those_of_a_plain_forward_pass(engine, policy):
    rollouts, _ = run(engine)
    for _, steps in rollouts.groupby("trajectory_id"):
        stream: list[int] = []
        for row in steps.to_dict("records"):
            stream += row["context_token_ids"]
            action = list(row["action_token_ids"])
            expected = reference_logprobs(policy, stream, action)
            assert list(row["action_logprobs"]) == pytest.approx(expected, abs=1e-4)
            stream += action


def test_bytes_depend_neither_on_a_warm_engine_nor_on_tool_times(policy, engine, monkeypatch):
    expected, _ = run(engine)
    for seed in range(3):
        monkeypatch.setattr(ToyEnv, "jitter", random.Random(seed))
        warm, _ = run(engine)
        pd.testing.assert_frame_equal(warm, expected)
        fresh = LocalEngine(threads=1)
        fresh.load(policy, "v0")
        run(fresh, requests(2, 5))
        cold, _ = run(fresh, list(reversed(requests(4, 4))))
        pd.testing.assert_frame_equal(cold, expected)


def test_p26_rollouts_after_new_weights_equal_those_of_a_fresh_engine(policy, engine, tmp_path):
    other = engine_policy(tmp_path, seed=1)
    before, _ = run(engine)
    engine.load(other, "v1")
    after, _ = run(engine)
    fresh = LocalEngine(threads=1)
    fresh.load(other, "v1")
    pd.testing.assert_frame_equal(after, run(fresh)[0])
    assert set(after["policy_version"]) == {"v1"}
    assert not before["action_logprobs"].equals(after["action_logprobs"])


def test_without_determinism_the_actions_are_equal_up_to_rounding(engine, monkeypatch):
    expected, _ = run(engine)
    monkeypatch.setattr(ToyEnv, "jitter", random.Random(0))
    limits = LIMITS.model_copy(update={"deterministic": False})
    found, timings = run(engine, limits=limits)
    check_tables(found, timings, limits, STOPS)
    assert found["action_token_ids"].equals(expected["action_token_ids"])

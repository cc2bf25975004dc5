"""An episode of 48 steps through several window moves, from the model's inputs to the update.

Pinned: the table records the exact ids that the model got; log-probs of engine and trainer are
equal; the ratio of the first update is 1.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from agent_r1.engines.local import LocalEngine
from agent_r1.mdp import visible_context
from agent_r1.pipelines.advantage.nodes import compute_advantages
from agent_r1.pipelines.preferences.nodes import build_preferences
from agent_r1.rollout import collect
from agent_r1.tables.arrays import ragged
from agent_r1.training.optimizer import write_empty
from agent_r1.training.sequences import build_sequences
from tests.support.invariants import check_tables
from tests.support.model_spy import ModelSpy
from tests.support.nodes import compute_logprobs, update_policy
from tests.support.replays import again
from tests.support.step_tables import rewards
from tests.support.tiny_models import ENGINE_VOCABULARY, engine_policy, write_tokenizer
from tests.support.toy_world import ToyChat, ToyEnv, parameters, requests

STEPS = 48
LIMITS = parameters(
    max_steps=STEPS, max_tokens_per_step=60, max_context_tokens=250, on_overflow="window"
)


class Chat(ToyChat):
    """A third of all tokens are stop tokens, so no action is cut."""

    stop_token_ids = tuple(range(3, 9)) + tuple(range(50, ENGINE_VOCABULARY))


class ForgetfulChat(Chat):
    """The first half of each action is forgotten, like dropped reasoning."""

    def forgotten(self, action_token_ids):
        return [(0, len(action_token_ids) // 2)] if len(action_token_ids) > 1 else []


class EndlessEnv(ToyEnv):
    """Always gives an observation and never ends."""

    async def step(self, action):
        observation = await self.use_tools(action)
        return observation or {"go": "on"}, 0.125, False, False, {}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = engine_policy(tmp_path_factory.mktemp("policy"))
    return write_tokenizer(folder, ENGINE_VOCABULARY)


def load(policy: Path) -> LocalEngine:
    engine = LocalEngine(threads=1)
    engine.load(policy, "v0")
    return engine


def play(engine: LocalEngine, limits=LIMITS, chat=Chat) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two groups of two."""
    return collect(engine, chat(), EndlessEnv, requests(2, 2), limits)


@pytest.fixture(scope="module")
def played(policy):
    with pytest.MonkeyPatch.context() as patch:
        engine = load(policy)
        spy = ModelSpy(engine, patch)
        rollouts, timings = play(engine)
    return rollouts, timings, spy.seen


def moves(steps: pd.DataFrame) -> np.ndarray:
    """Steps before which the window moved."""
    return steps["step_index"].to_numpy()[1:][np.diff(steps["context_start"].to_numpy()) > 0]


def test_the_table_records_the_exact_ids_that_the_model_got(played):
    rollouts, timings, given = played
    check_tables(rollouts, timings, LIMITS, Chat.stop_token_ids)
    assert sorted(given) == sorted(set(rollouts["trajectory_id"]))
    for name, steps in rollouts.groupby("trajectory_id"):
        assert len(steps) == STEPS
        assert len(moves(steps)) >= 2
        stream: list[int] = []
        for row, seen in zip(steps.to_dict("records"), given[name], strict=True):
            stream += list(row["context_token_ids"])
            window = (row["context_prefix"], row["context_start"], row["context_drops"])
            assert visible_context(stream, *window) == seen
            stream += list(row["action_token_ids"])
        assert len(stream) > 2 * LIMITS.max_context_tokens


def test_only_tokens_after_the_prompt_are_computed_again_and_only_after_a_move(played):
    """Keys stay valid up to the first changed token: beyond the prompt only by chance."""
    rollouts, timings, given = played
    for name, steps in rollouts.groupby("trajectory_id"):
        cached = timings[timings["trajectory_id"] == name]["cached_tokens"].tolist()
        actions = steps["action_token_ids"].tolist()
        kept = [
            same([*before, *action][:-1], now)
            for before, action, now in zip(given[name], actions, given[name][1:], strict=False)
        ]
        assert cached[1:] == kept
        prompt = steps["context_prefix"].iloc[0]
        moved = [cached[step] for step in moves(steps)]
        assert min(moved) == prompt
        assert max(moved) <= prompt + 10


def same(old: list[int], new: list[int]) -> int:
    """Number of equal leading tokens."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(old), len(new)))


def test_the_trainer_scores_each_action_with_the_window_of_its_sampling(played, policy):
    rollouts, _, _ = played
    sequences = build_sequences(rollouts)
    assert len(sequences.trajectory) == 4 + sum(
        len(moves(steps)) for _, steps in rollouts.groupby("trajectory_id")
    )
    assert sequences.tokens.lengths.max() <= LIMITS.max_context_tokens
    scored = compute_logprobs(rollouts, policy, policy, policy, {}, {})
    ours, theirs = ragged(scored["policy_logprobs"]), ragged(rollouts["action_logprobs"])
    assert ours.values == pytest.approx(theirs.values, abs=1e-4)
    # A mistake would show: with other windows the same actions have other log-probs.
    shifted = rollouts.assign(context_start=rollouts["context_start"] + 1)
    wrong = ragged(compute_logprobs(shifted, policy, policy, policy, {}, {})["policy_logprobs"])
    assert np.abs(wrong.values - ours.values).max() > 0.1


def test_neither_model_nor_trainer_sees_forgotten_tokens(policy, monkeypatch):
    engine = load(policy)
    spy = ModelSpy(engine, monkeypatch)
    rollouts, _ = play(engine, LIMITS.model_copy(update={"max_steps": 24}), ForgetfulChat)
    assert rollouts["context_drops"].notna().sum() > 80
    for name, steps in rollouts.groupby("trajectory_id"):
        assert len(moves(steps)) >= 1
        stream: list[int] = []
        for row, seen in zip(steps.to_dict("records"), spy.seen[name], strict=True):
            stream += list(row["context_token_ids"])
            window = (row["context_prefix"], row["context_start"], row["context_drops"])
            assert visible_context(stream, *window) == seen
            stream += list(row["action_token_ids"])
    scored = compute_logprobs(rollouts, policy, policy, policy, {}, {})
    ours, theirs = ragged(scored["policy_logprobs"]), ragged(rollouts["action_logprobs"])
    assert ours.values == pytest.approx(theirs.values, abs=1e-4)


@pytest.mark.parametrize("packing", [False, True])
def test_the_ratio_of_the_first_update_is_one(played, policy, tmp_path, monkeypatch, packing):
    monkeypatch.chdir(tmp_path)
    rollouts, _, _ = played
    for name in ("critic", "state"):
        (tmp_path / name).mkdir()
    critic = write_empty(tmp_path / "critic", "no critic")
    state = write_empty(tmp_path / "state", "no step yet")
    names = sorted(set(rollouts["trajectory_id"]))
    scores = rewards(rollouts, **dict(zip(names, [1.0, 0.0, 0.0, 1.0], strict=True)))
    logprobs = compute_logprobs(rollouts, policy, policy, critic, {}, {})
    advantages = compute_advantages(rollouts, scores, logprobs, {"estimator": "grpo"})
    update = {"mini_batch_trajectories": 4, "learning_rate": 1e-3, "packing": packing}
    update |= {"aggregation": "token_mean", "warmup_steps": 0, "eps": 1e-8}
    preferences = build_preferences(rollouts, scores)
    tables = (rollouts, logprobs, advantages, preferences)
    *_, metrics = update_policy(
        policy, policy, critic, state, {}, *tables, update, {}, 0, iteration="iter_00001"
    )
    said = dict(zip(metrics["metric"], metrics["value"], strict=True))
    assert said["initial_ratio_max_deviation"] < 1e-4
    assert said["ratio_mean"] == pytest.approx(1, abs=1e-4)
    assert said["logprob_drift_max"] < 1e-4  # of sampler and trainer
    assert said["grad_norm"] > 0


def test_cold_and_warm_engines_give_equal_bytes(played, policy):
    rollouts, _, _ = played
    engine = load(policy)
    pd.testing.assert_frame_equal(play(engine)[0], rollouts)
    pd.testing.assert_frame_equal(play(engine)[0], rollouts)


@pytest.mark.parametrize("changes", [{"concurrency": 1}, {"deterministic": False}])
def test_actions_do_not_depend_on_other_rows_up_to_rounding(played, policy, changes):
    rollouts, _, _ = played
    found, _ = play(load(policy), LIMITS.model_copy(update=changes))
    assert found["action_token_ids"].equals(rollouts["action_token_ids"])
    assert found["context_start"].equals(rollouts["context_start"])


def test_a_replay_repeats_the_moves(played):
    rollouts, _, _ = played
    limits = LIMITS.model_dump(exclude={"dynamic_sampling"})
    found = again(rollouts, requests(2, 2), EndlessEnv, chat=Chat(), **limits)
    assert found.differences == []
    assert found.compared == 4 * STEPS
    assert json.loads(found.rollouts["info"].iloc[-1]) == {}

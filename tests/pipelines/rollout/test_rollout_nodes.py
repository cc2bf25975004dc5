"""The whole node with everything real but the policy, which is random and tiny."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest
from transformers import Gemma3Config, GPT2Config

from agent_r1 import tables
from agent_r1.chat import ChatParameters, load_tokenizer, make_format
from agent_r1.engines.local import LocalEngine
from agent_r1.environments.multihop_qa import MultihopQAEnv
from agent_r1.mdp import EnvironmentFailure
from agent_r1.parameters import ParameterError
from agent_r1.pipelines.rollout.nodes import rollout_requests
from agent_r1.rollout import BrokenEnvironmentError, RolloutParameters, replay_trajectories
from agent_r1.storage.hashing import folder_sha256
from tests.support.invariants import check_tables
from tests.support.nodes import generate_rollouts
from tests.support.tiny_models import write_stopping_policy

ROLLOUT = {
    "tasks_per_iteration": 3,
    "group_size": 4,
    "max_tokens_per_step": 16,
    "max_context_tokens": 256,
}
CHAT = {"system": "Answer."}


@pytest.fixture(scope="module")
def policy(policy_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("random") / "policy"
    shutil.copytree(policy_folder, folder)
    return write_stopping_policy(folder, "<|im_end|>")


@pytest.fixture
def tasks():
    rows = [
        {
            "task_id": f"task{number}",
            "environment": "multihop_qa",
            "split": "train" if number < 6 else "held_out",
            "family": "toy",
            "prompt": f"What is number {number}?",
            "answers": ["7"],
            "hops": 1,
            "payload": "{}",
        }
        for number in range(8)
    ]
    return tables.from_rows(rows, "tasks")


def run_all(policy, tasks, documents, engine=None, iteration="iter_00001", seed=0, **changes):
    return generate_rollouts(
        engine or LocalEngine(threads=1),
        policy,
        tasks,
        documents,
        {},
        ROLLOUT | changes,
        {"name": "multihop_qa"},
        CHAT,
        {},
        seed,
        iteration=iteration,
    )


def run(*inputs, **changes):
    """The rollouts and timings alone."""
    return run_all(*inputs, **changes)[:2]


def test_groups_of_the_iterations_tasks(policy, tasks, documents):
    rollouts, timings = run(policy, tasks, documents)
    stops = make_format(ChatParameters(**CHAT), load_tokenizer(policy)).stop_token_ids
    check_tables(rollouts, timings, RolloutParameters(**ROLLOUT), stops)
    assert rollouts["step_index"].max() > 0
    assert set(rollouts["policy_version"]) == {folder_sha256(policy)}
    first = rollouts[rollouts["step_index"] == 0]
    assert first.groupby("group_id")["sample_index"].agg(list).tolist() == [[0, 1, 2, 3]] * 3
    assert set(rollouts["task_id"]) <= {f"task{number}" for number in range(6)}
    assert set(rollouts["group_id"]) == {f"iter_00001/{task}" for task in set(rollouts["task_id"])}


def test_the_text_of_an_action_is_its_tokens_decoded(policy, tasks, documents):
    rollouts, _ = run(policy, tasks, documents)
    tokenizer = load_tokenizer(policy)
    for row in rollouts.to_dict("records"):
        stopped = row["finish_reason"] == "stop"
        ids = row["action_token_ids"][:-1] if stopped else row["action_token_ids"]
        assert row["action_text"] == tokenizer.decode(ids)


def test_an_iteration_is_a_function_of_its_inputs(policy, tasks, documents):
    engine = LocalEngine(threads=1)
    first, _ = run(policy, tasks, documents, engine)
    run(policy, tasks, documents, engine, iteration="iter_00002")
    again, _ = run(policy, tasks, documents, engine)
    pd.testing.assert_frame_equal(again, first)
    other, _ = run(policy, tasks, documents, engine, seed=1)
    assert not other["action_token_ids"].equals(first["action_token_ids"])


def test_a_replay_of_an_iteration_finds_what_was_recorded(policy, tasks, documents):
    rollouts, _ = run(policy, tasks, documents, iteration="iter_00002")
    parameters = RolloutParameters(**ROLLOUT)
    wanted = rollout_requests(tasks, parameters, 0, "iter_00002")
    groups = (parameters, {}, CHAT)
    version = folder_sha256(policy)
    found = replay_trajectories(rollouts, wanted, documents, policy, *groups, version)
    assert found.differences == []
    assert found.matching == len(rollouts)


def test_iterations_of_an_epoch_attempt_different_tasks(policy, tasks, documents):
    engine = LocalEngine(threads=1)
    tables = [run(policy, tasks, documents, engine, f"iter_0000{k}")[0] for k in (1, 2)]
    attempted = [set(rollouts["task_id"]) for rollouts in tables]
    assert attempted[0] | attempted[1] == {f"task{number}" for number in range(6)}


def test_bad_input_is_refused_before_the_engine_is_touched(policy, tasks, documents):
    engine = LocalEngine(threads=1)
    with pytest.raises(ParameterError, match="Did you mean 'group_size'"):
        run(policy, tasks, documents, engine, grup_size=4)
    with pytest.raises(ParameterError, match="the split 'train' has only 6 tasks"):
        run(policy, tasks, documents, engine, tasks_per_iteration=7)
    with pytest.raises(ParameterError, match="only 256 positions"):
        run(policy, tasks, documents, engine, max_context_tokens=257)
    assert engine.weight_version == ""


@pytest.mark.parametrize(
    "config",
    [GPT2Config(n_positions=128), Gemma3Config(text_config={"max_position_embeddings": 128})],
    ids=["by another name", "deeper down"],
)
def test_how_long_a_context_may_be_is_found_in_any_config(
    policy, tasks, documents, tmp_path, config
):
    folder = shutil.copytree(policy, tmp_path / "policy")
    config.save_pretrained(folder)
    engine = LocalEngine(threads=1)
    with pytest.raises(ParameterError, match="only 128 positions"):
        run(folder, tasks, documents, engine, max_context_tokens=129)
    assert engine.weight_version == ""


def test_an_environment_that_fails_everywhere_stops_the_run(policy, tasks, documents, monkeypatch):
    def broken(self):
        raise EnvironmentFailure("the database is down")

    monkeypatch.setattr(MultihopQAEnv, "reset", broken)
    with pytest.raises(BrokenEnvironmentError) as caught:
        run(policy, tasks, documents)
    assert "'multihop_qa' failed in all 12 trajectories" in str(caught.value)
    assert str(caught.value).endswith("/0: the database is down")


def test_an_environment_that_fails_sometimes_does_not(policy, tasks, documents, monkeypatch):
    reset, calls = MultihopQAEnv.reset, []

    def flaky(self):
        calls.append(self)
        if len(calls) < 12:
            raise EnvironmentFailure("the database is down")
        return reset(self)

    monkeypatch.setattr(MultihopQAEnv, "reset", flaky)
    rollouts, _ = run(policy, tasks, documents)
    assert (rollouts["end_reason"].dropna() == "infrastructure").sum() == 11

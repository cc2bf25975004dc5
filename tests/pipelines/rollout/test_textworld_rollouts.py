"""A game of more than 20 steps through the loop, in a context that holds a few of them."""

from __future__ import annotations

import json

import pytest

from agent_r1 import tables
from agent_r1.chat import ChatParameters, load_tokenizer, make_format
from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.environments import EnvironmentParameters
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.rollout import (
    RolloutParameters,
    collect,
    environment_factory,
    group_requests,
    replay_trajectories,
)
from agent_r1.tasks.textworld import TextWorldParameters, load_textworld
from agent_r1.training.sequences import build_sequences
from tests.support.invariants import check_tables

GAME = {"quest_length": 22}
# A byte is a token.
ROLLOUT = RolloutParameters(
    max_steps=30, max_tokens_per_step=200, max_context_tokens=6000, on_overflow="window"
)
ENVIRONMENT = EnvironmentParameters(name="textworld", options={"reward": "progress"})
CHAT = ChatParameters(system="Play.")


@pytest.mark.slow
def test_the_shortest_way_is_demonstrated_replayed_and_trained_on(policy_folder, tmp_path):
    pytest.importorskip("textworld")
    tasks, documents = load_textworld(
        TextWorldParameters(**GAME, folder=str(tmp_path)), {"train": 1}
    )
    requests = group_requests(tasks, "demonstrations", [1.0, 1.0], 0, "build_demonstrations")
    chat = make_format(CHAT, load_tokenizer(policy_folder))
    turns = [turn["call"] for turn in json.loads(tasks["payload"][0])["script"]]
    assert len(turns) >= 20
    script = [
        chat.render_action(
            Action(ActionType.TOOL_CALL, "", tool_calls=(ToolCall(one["name"], one["arguments"]),))
        )
        for one in turns
    ]
    engine = ScriptedEngine({request.trajectory_id: script for request in requests})
    make = environment_factory(ENVIRONMENT, documents)
    rollouts, timings = collect(engine, chat, make, requests, ROLLOUT)

    check_tables(rollouts, timings, ROLLOUT, chat.stop_token_ids)
    assert rollouts["context_start"].nunique() >= 3
    for _, steps in rollouts.groupby("trajectory_id"):
        assert steps["end_reason"].tolist()[-1] == "environment"
        assert steps["env_reward"].sum() == pytest.approx(1)
        assert bool(steps["terminated"].iloc[-1])
    assert build_sequences(rollouts).tokens.lengths.max() <= ROLLOUT.max_context_tokens

    again = replay_trajectories(
        rollouts, requests, documents, policy_folder, ROLLOUT, ENVIRONMENT, CHAT, "scripted"
    )
    assert again.differences == []
    assert again.compared == len(rollouts)
    assert tables.to_arrow(again.rollouts, "rollouts").equals(tables.to_arrow(rollouts, "rollouts"))

"""Dropped reasoning: in the table, in the engine, and for the trainer."""

from __future__ import annotations

import pytest

from agent_r1 import tables
from agent_r1.chat import ChatParameters, make_format
from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.environments import EnvironmentParameters
from agent_r1.mdp import Action, ActionType, ToolCall, visible_context
from agent_r1.rollout import RolloutParameters, collect, environment_factory, group_requests
from tests.support.toy_tokenizer import build_tokenizer

THOUGHT = "<think>\nWhere is it?\n</think>\n\n"


class SpyEngine(ScriptedEngine):
    """Records the visible tokens before each action."""

    def __init__(self, scripts):
        super().__init__(scripts)
        self.streams, self.shown, self.seen = {}, {}, []

    def window(self, session, prefix, start, drops=None):
        super().window(session, prefix, start, drops)
        self.shown[session] = (prefix, start, drops)

    async def generate(self, session, new_token_ids, sampling):
        stream = self.streams.setdefault(session, [])
        stream.extend(new_token_ids)
        self.seen.append(visible_context(stream, *self.shown.get(session, (0, 0))))
        generation = await super().generate(session, new_token_ids, sampling)
        stream.extend(generation.token_ids)
        return generation


def look_up(query):
    return Action(ActionType.TOOL_CALL, "", tool_calls=(ToolCall("search", {"query": query}),))


def play(reasoning, **limits):
    tokenizer = build_tokenizer()
    chat = make_format(ChatParameters(reasoning=reasoning), tokenizer)
    documents = tables.from_rows(
        [{"document_id": "1", "title": "Paris", "text": "Paris is a city."}], "documents"
    )
    task = {
        "task_id": "t", "environment": "multihop_qa", "split": "train", "family": "f",
        "prompt": "Where?", "answers": ["x"], "payload": "{}",
    }  # fmt: skip
    tasks = tables.from_rows([task], "tasks")
    requests = group_requests(tasks, "iter_00001", [1.0], 0, "generate_rollouts")
    actions = [look_up("Paris")] * 3 + [Action(ActionType.ANSWER, "", answer="x")]
    ids = [chat.render_action(action, THOUGHT) for action in actions]
    engine = SpyEngine({requests[0].trajectory_id: ids})
    limits = {"max_tokens_per_step": 120, "max_context_tokens": 2000, "max_steps": 6} | limits
    make = environment_factory(EnvironmentParameters(), documents)
    rollouts, _ = collect(engine, chat, make, requests, RolloutParameters(**limits))
    return rollouts.to_dict("records"), engine, tokenizer


@pytest.mark.parametrize("reasoning", ["keep", "drop"])
def test_the_table_records_what_the_engine_saw(reasoning):
    rows, engine, tokenizer = play(reasoning)
    stream = []
    for row, seen in zip(rows, engine.seen, strict=True):
        stream += list(row["context_token_ids"])
        window = (row["context_prefix"], row["context_start"], row["context_drops"])
        assert visible_context(stream, *window) == seen
        assert row["prompt_tokens"] == len(seen)
        stream += list(row["action_token_ids"])
        earlier = row["step_index"] if reasoning == "keep" else 0
        assert tokenizer.decode(seen).count("Where is it?") == earlier
    assert len(rows) == 4
    assert [row["action_text"].startswith("<think>") for row in rows] == [True] * 4
    assert tokenizer.decode(engine.seen[-1]).count('"query": "Paris"') == 3


def test_dropped_tokens_take_no_room():
    """The context overflows with the reasoning, but not without it."""
    rows, engine, _ = play("drop")
    limit = len(engine.seen[-1]) + 120
    kept, _, _ = play("keep", max_context_tokens=limit, on_overflow="end")
    dropped, _, _ = play("drop", max_context_tokens=limit, on_overflow="end")
    assert kept[-1]["end_reason"] == "context_overflow"
    assert dropped[-1]["end_reason"] == "answered"
    assert len(dropped) == len(rows)


def test_a_window_that_moves_keeps_the_drops_of_visible_steps():
    _, engine, _ = play("drop")
    limit = len(engine.seen[-1]) + 100
    rows, engine, tokenizer = play("drop", max_context_tokens=limit, on_overflow="window")
    moved = [row for row in rows if row["context_start"]]
    assert moved
    for row in moved:
        assert row["context_drops"] is None or min(row["context_drops"]) >= row["context_start"]
    for seen in engine.seen:
        assert "Where is it?" not in tokenizer.decode(seen)

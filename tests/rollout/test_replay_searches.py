"""Replays of the question-answering environment with its real search, format and tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_r1 import tables
from agent_r1.chat import ChatParameters, load_tokenizer, make_format
from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.environments import EnvironmentParameters
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.parameters import ParameterError
from agent_r1.rollout import (
    RolloutParameters,
    collect,
    environment_factory,
    group_requests,
    replay_trajectories,
)
from tests.support.toy_tokenizer import build_tokenizer

PAGES = {
    "France": "The capital of France is Paris.",
    "Paris": "Paris lies on the Seine.",
    "Spain": "The capital of Spain is Madrid.",
    "Madrid": "Madrid lies on the Manzanares.",
}
ROLLOUT = {"max_tokens_per_step": 200, "max_context_tokens": 1500, "max_steps": 4}
ENVIRONMENT = {"name": "multihop_qa", "options": {"top_k": 2}}
CHAT = {"system": "Answer.", "render_tools": True}
VERSION = "0f" * 32


def search(*queries, tool="search", argument="query"):
    calls = tuple(ToolCall(tool, {argument: query}) for query in queries)
    return Action(ActionType.TOOL_CALL, "", tool_calls=calls)


def answer(text):
    return Action(ActionType.ANSWER, "", answer=text)


MALFORMED = Action(ActionType.MALFORMED, "<tool_call>{nothing")
EPISODES = [
    [search("France"), search("Paris"), answer("Seine")],
    [search("capital Spain", "Madrid river"), answer("Rhine")],
    [MALFORMED, search("Paris", tool="find"), search("Paris", argument="q"), search("Zzyzx")],
    [answer("<|im_end|> Größe \N{SNOWMAN}")],
]
"""Two hops; parallel calls; every mistake until the steps are used up; an answer at once."""


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> SimpleNamespace:
    """Three groups of four attempts, and their record as rows."""
    tokenizer: Path = tmp_path_factory.mktemp("tokenizer")
    build_tokenizer().save_pretrained(tokenizer)
    documents = tables.from_rows(
        [{"document_id": t, "title": t, "text": text} for t, text in PAGES.items()], "documents"
    )
    task = {"environment": "multihop_qa", "split": "train", "family": "f", "answers": ["Seine"]}
    own = json.dumps({"context": [["Paris", ["Another ", "Paris."]], ["Rome", ["A city."]]]})
    tasks = tables.from_rows(
        [
            task | {"task_id": f"t{number}", "prompt": f"Question {number}?", "payload": payload}
            for number, payload in enumerate(["{}", own, "{}"])
        ],
        "tasks",
    )
    wanted = group_requests(tasks, "iter_00001", [1.0] * 4, 0, "generate_rollouts")
    format_ = make_format(ChatParameters(**CHAT), load_tokenizer(tokenizer))
    scripts = {
        one.trajectory_id: [format_.render_action(action) for action in EPISODES[one.sample_index]]
        for one in wanted
    }
    make = environment_factory(EnvironmentParameters(**ENVIRONMENT), documents)
    engine = ScriptedEngine(scripts, VERSION)
    table, _ = collect(engine, format_, make, wanted, RolloutParameters(**ROLLOUT))

    def again(rows, documents=documents, **changes):
        groups = {"rollout": ROLLOUT, "environment": ENVIRONMENT, "chat": CHAT}
        groups |= {"tokenizer": tokenizer} | changes
        table = tables.from_rows(rows, "rollouts")
        return replay_trajectories(table, wanted, documents, policy_version=VERSION, **groups)

    rows = tables.to_arrow(table, "rollouts").to_pylist()
    return SimpleNamespace(rows=rows, again=again, documents=documents, table=table)


def changed(world, number, **values):
    return [row | values if i == number else row for i, row in enumerate(world.rows)]


def named(found):
    return [(one.trajectory_id, one.step_index, one.column) for one in found.differences]


def test_the_record_is_as_intended(world):
    statuses = {
        result["status"] for row in world.rows for result in json.loads(row["tool_results"])
    }
    assert statuses == {"ok", "unknown_tool", "bad_arguments"}
    assert {row["action_type"] for row in world.rows} == {"tool_call", "answer", "malformed"}
    assert {row["end_reason"] for row in world.rows} == {None, "answered", "max_steps"}


@pytest.mark.parametrize("concurrency", [1, 5, 512])
@pytest.mark.parametrize("deterministic", [True, False])
def test_an_untouched_table_matches(world, concurrency, deterministic):
    limits = ROLLOUT | {"concurrency": concurrency, "deterministic": deterministic}
    found = world.again(world.rows, rollout=limits)
    assert found.differences == []
    assert (found.compared, found.matching, found.skipped) == (30, 30, 0)
    assert found.rollouts.equals(world.table)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("observation", "[1] France\nThe capital of France is Lyon."),
        ("tool_results", '[{"name": "search", "status": "ok", "attempts": 1, "content": "Lyon"}]'),
        ("env_reward", 1.0),
        ("action_text", "Lyon"),
        ("tool_calls", "[]"),
        ("end_reason", "environment"),
        ("state_key", "0"),
        ("context_token_ids", [1]),
    ],
)
def test_only_the_changed_value_is_named(world, column, value):
    found = world.again(changed(world, 0, **{column: value}))
    assert named(found) == [("iter_00001/t0/0", 0, column)]
    assert (found.compared, found.matching) == (30, 29)


def test_a_difference_as_text(world):
    told = world.rows[0]["observation"].replace("Paris", "Lyons", 1)
    (line,) = map(str, world.again(changed(world, 0, observation=told)).differences)
    assert line.startswith("iter_00001/t0/0, step 0, observation: recorded …'")
    assert "Lyons" in line.partition("replayed")[0]
    assert "Paris" in line.partition("replayed")[2]


def test_another_token_shows_in_the_text_and_its_consequences(world):
    tokens = list(world.rows[0]["action_token_ids"])
    tokens[-3] = tokens[-4]
    found = world.again(changed(world, 0, action_token_ids=tokens))
    assert ("iter_00001/t0/0", 0, "action_text") in named(found)
    assert {name for name, _, _ in named(found)} == {"iter_00001/t0/0"}


@pytest.mark.parametrize("tokens", [[], [-1], [2**31 - 1, 2], [10**6] * 3, [5] * 5000, [None]])
def test_tokens_that_no_engine_samples_are_found_without_an_error(world, tokens):
    found = world.again(changed(world, 0, action_token_ids=tokens))
    assert {name for name, _, _ in named(found)} == {"iter_00001/t0/0"}
    assert found.matching >= 27


def test_an_unknown_task_is_named_and_all_others_are_replayed(world):
    rows = [row | {"task_id": "t9"} if i < 3 else row for i, row in enumerate(world.rows)]
    found = world.again(rows)
    assert [str(one) for one in found.differences] == [
        f"iter_00001/t0/0, step {step}, task_id: recorded 't9', replayed 't0'" for step in range(3)
    ]
    assert (found.compared, found.matching) == (30, 27)


def test_removed_duplicated_and_swapped_rows_are_named(world):
    rows = world.rows
    assert named(world.again(rows[:2] + rows[3:])) == [("iter_00001/t0/0", 2, "rows")]
    assert named(world.again([*rows, rows[0]])) == [("iter_00001/t0/0", 0, "rows")]
    swapped = [rows[1], rows[0], *rows[2:]]
    assert named(world.again(swapped)) == [
        ("iter_00001/t0/0", 0, "position"),
        ("iter_00001/t0/0", 1, "position"),
    ]


def test_another_corpus_shows_in_the_searches(world):
    documents = world.documents.assign(text=world.documents["text"].str.replace("Seine", "Loire"))
    found = world.again(world.rows, documents)
    assert {column for _, _, column in named(found)} == {
        "observation", "tool_results", "state_key", "context_token_ids", "prompt_tokens",
    }  # fmt: skip
    # The second task has its own paragraphs.
    assert {name.split("/")[1] for name, _, _ in named(found)} == {"t0", "t2"}


@pytest.mark.parametrize(
    ("group", "values"),
    [
        ("rollout", ROLLOUT | {"max_steps": 3}),
        ("environment", {"options": {"top_k": 1}}),
        ("chat", CHAT | {"system": "Answer!"}),
    ],
)
def test_other_parameters_show(world, group, values):
    assert world.again(world.rows, **{group: values}).differences


def test_parameters_that_cannot_be_used_are_errors(world, tmp_path):
    with pytest.raises(ParameterError, match="Did you mean 'max_steps'"):
        world.again(world.rows, rollout={"max_step": 3})
    with pytest.raises(ParameterError, match="no tokenizer that can be loaded"):
        world.again(world.rows, tokenizer=tmp_path)

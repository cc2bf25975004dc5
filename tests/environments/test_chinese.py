"""A Chinese two-hop question over a small Chinese corpus, from the prompt to the reward."""

from __future__ import annotations

import json

import pytest

from agent_r1 import tables
from agent_r1.chat import ChatParameters, make_format
from agent_r1.engines.scripted import ScriptedEngine
from agent_r1.environments import EnvironmentParameters
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.pipelines.reward.nodes import score_rewards
from agent_r1.rollout import RolloutParameters, collect, environment_factory, group_requests
from agent_r1.tools import tool
from tests.support.toy_tokenizer import build_tokenizer

PAGES = {
    "呐喊": "《呐喊》是鲁迅创作的短篇小说集，1923年出版，收录《狂人日记》等作品。",
    "鲁迅": "鲁迅，原名周树人，中国作家，出生于浙江省绍兴市。",
    "绍兴": "绍兴是浙江省的城市，以黄酒闻名。",
    "骆驼祥子": "《骆驼祥子》是老舍创作的长篇小说，1936年发表。",
    "老舍": "老舍，原名舒庆春，中国作家，出生于北京。",
}
QUESTION = "小说集《呐喊》的作者出生在哪座城市？"
ANSWERS = ["绍兴", "绍兴市"]


@tool
def search(query: str) -> str:
    """As the environment's own.

    Args:
        query: words.
    """
    return query


def look_up(query):
    calls = (ToolCall("search", {"query": query}),)
    return Action(ActionType.TOOL_CALL, "", tool_calls=calls)


def answer(text):
    return Action(ActionType.ANSWER, "", answer=text)


SCRIPTS = [
    [look_up("小说集呐喊的作者"), look_up("鲁迅出生于哪里"), answer("“绍兴市”。")],
    [look_up("骆驼祥子"), answer("北京")],
]
"""One finds both pages by words that are in them; the other is about another book."""


@pytest.mark.parametrize("name", ["hermes", "react"])
def test_a_two_hop_question(name):
    documents = tables.from_rows(
        [{"document_id": t, "title": t, "text": text} for t, text in PAGES.items()], "documents"
    )
    task = {
        "task_id": "zh", "environment": "multihop_qa", "split": "train", "family": "zh",
        "prompt": QUESTION, "answers": ANSWERS, "payload": "{}",
    }  # fmt: skip
    tasks = tables.from_rows([task], "tasks")
    chat = make_format(
        ChatParameters(format=name, system="请用搜索工具回答问题。"), build_tokenizer()
    )
    requests = group_requests(tasks, "iter_00001", [1.0] * 2, 0, "generate_rollouts")
    engine = ScriptedEngine(
        {
            one.trajectory_id: [
                chat.render_action(action, tools=[search]) for action in SCRIPTS[one.sample_index]
            ]
            for one in requests
        }
    )
    limits = RolloutParameters(max_tokens_per_step=300, max_context_tokens=3000, max_steps=4)
    make = environment_factory(EnvironmentParameters(), documents)
    rollouts, _ = collect(engine, chat, make, requests, limits)
    right = rollouts[rollouts["sample_index"] == 0]
    told = [json.loads(results) for results in right["tool_results"]]
    assert [results[0]["content"].split("\n")[0] for results in told[:2]] == ["呐喊", "鲁迅"]
    rewards = score_rewards(rollouts, tasks, {"terms": {"outcome": {"metric": "exact_match"}}})
    assert rewards["trajectory_reward"].tolist() == [1, 1, 1, 0, 0]
    f1 = score_rewards(rollouts, tasks, {"terms": {"outcome": {"metric": "f1"}}})
    assert f1["trajectory_reward"].tolist() == [1, 1, 1, 0, 0]

"""The native turns of each family of models, read and written as text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.chat.dialects import DIALECTS
from agent_r1.mdp import Action, ActionType, ToolCall

QWEN, LLAMA, HARMONY = DIALECTS
FRANCE = ToolCall("search", {"query": "France"})


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (QWEN, 'I look.\n<tool_call>\n{"name": "search", "arguments": {"query": "France"}}\n'
               "</tool_call>"),
        (LLAMA, '{"name": "search", "parameters": {"query": "France"}}'),
        (LLAMA, 'I look.<|python_tag|>{"name": "search", "parameters": {"query": "France"}}'),
        (HARMONY, ' to=functions.search<|channel|>commentary json<|message|>{"query": "France"}'),
        (HARMONY, "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>"
                  'commentary to=functions.search <|constrain|>json<|message|>{"query": "France"}'),
    ],
)  # fmt: skip
def test_a_call(dialect, text):
    assert dialect.read(text) == Action(ActionType.TOOL_CALL, text, tool_calls=(FRANCE,))


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (QWEN, "Paris"),
        (QWEN, "<think>\nRome?\n</think>\n\nParis"),
        (LLAMA, "It is <answer>Paris</answer>."),
        (HARMONY, "<|channel|>final<|message|>Paris"),
        (HARMONY, "<|channel|>analysis<|message|>Rome?<|end|><|start|>assistant"
                  "<|channel|>final<|message|>Paris"),
    ],
)  # fmt: skip
def test_a_turn_without_a_call_is_the_answer(dialect, text):
    assert dialect.read(text) == Action(ActionType.ANSWER, text, answer="Paris")


@pytest.mark.parametrize(
    ("dialect", "text", "error"),
    [
        (QWEN, "<tool_call>{broken}</tool_call>", "the tool call is not valid JSON"),
        (QWEN, "<think>x</think>\n", "the turn says nothing"),
        (LLAMA, '{"name": "f", "arguments": {}}', "the tool call has no 'parameters'"),
        (LLAMA, '{"name": "f", "parameters": {}}; {"name"', "text after the tool call"),
        (LLAMA, "<|python_tag|>print(1)", "the tool call is not valid JSON"),
        (HARMONY, "Paris", "text outside of a message"),
        (HARMONY, "<|channel|>analysis<|message|>hm", "no call (to=functions.…) and no message"),
        (HARMONY, "<|channel|>commentary to=python<|message|>{}", "'python' is no tool"),
        (HARMONY, " to=functions.f<|message|>[]", "the arguments of the tool call are not"),
        (HARMONY, " to=functions.f<|message|>{} x", "text after the tool call"),
    ],
)
def test_p29_malformed_turns_say_what_was_wrong(dialect, text, error):
    action = dialect.read(text)
    assert action.type is ActionType.MALFORMED
    assert action.error.startswith(f"could not parse: {error}")
    assert action.text == text


@pytest.mark.parametrize("dialect", [QWEN, LLAMA], ids=lambda dialect: dialect.name)
def test_tags_that_are_not_closed_are_read_fast(dialect):
    started = time.process_time()
    assert dialect.read("<answer>Paris</answer>" + "<answer>" * 20_000).answer == "Paris"
    assert time.process_time() - started < 2


def test_harmony_reasoning_is_each_analysis_message():
    text = (
        "<|channel|>analysis<|message|>one<|end|><|start|>assistant<|channel|>commentary<|message|>"
        "words<|end|><|start|>assistant<|channel|>analysis<|message|>two<|end|><|start|>assistant"
        "<|channel|>final<|message|><|channel|>analysis<|message|>quoted<|end|>"
    )
    kept = text
    for begin, end in reversed(HARMONY.reasoning(text)):
        kept = kept[:begin] + kept[end:]
    assert kept == (
        "<|channel|>commentary<|message|>words<|end|><|start|>assistant"
        "<|channel|>final<|message|><|channel|>analysis<|message|>quoted<|end|>"
    )


NAMES = st.from_regex(r"[A-Za-z_][\w.-]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["<|end|>", "<|message|>", "</tool_call>", "<|python_tag|>", "{", "<answer>"]
)
CALLS = st.builds(ToolCall, NAMES, st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@settings(max_examples=100, deadline=None)
@given(calls=st.lists(CALLS, min_size=1, max_size=3))
def test_calls_come_back_as_they_were_written(dialect, calls):
    made = tuple(calls if dialect.parallel else calls[:1])
    read = dialect.read("".join(dialect.write(Action(ActionType.TOOL_CALL, "", tool_calls=made))))
    if "</think>" not in str(made):
        assert read.tool_calls == made


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@settings(max_examples=150, deadline=None)
@given(
    text=st.lists(
        st.sampled_from(
            ["<|channel|>", "final", "analysis", "<|message|>", "<|end|>", "<|start|>assistant",
             " to=functions.f", "<tool_call>", "</tool_call>", "{", "}", '{"name": "f", ',
             '"parameters": {}}', '"arguments": {}}', "<|python_tag|>", "</think>"]
        )
        | st.text(max_size=4)
    ).map("".join)
)  # fmt: skip
def test_p29_any_text_is_read_as_exactly_one_type(dialect, text):
    action = dialect.read(text)
    assert action.text == text
    assert (action.type is ActionType.TOOL_CALL) == bool(action.tool_calls)
    assert (action.type is ActionType.ANSWER) == (action.answer is not None)
    assert (action.type is ActionType.MALFORMED) == (action.error is not None)
    for begin, end in dialect.reasoning(text):
        assert 0 <= begin < end <= len(text)

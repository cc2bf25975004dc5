"""The text of a turn, read and written."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.chat.hermes import parse_turn, write_turn
from agent_r1.mdp import Action, ActionType, ToolCall

CALL = '<tool_call>{"name": "search", "arguments": {"query": "France"}}</tool_call>'
FRANCE = ToolCall("search", {"query": "France"})


def test_a_call():
    action = parse_turn(CALL)
    assert action == Action(ActionType.TOOL_CALL, CALL, tool_calls=(FRANCE,))


def test_parallel_calls_keep_their_order():
    second = '<tool_call>\n{"arguments": {}, "name": "now"}\n</tool_call>'
    action = parse_turn(f"I need two things.\n{CALL}\n{second}")
    assert action.type is ActionType.TOOL_CALL
    assert action.tool_calls == (FRANCE, ToolCall("now", {}))


def test_an_answer_is_stripped():
    action = parse_turn("So it is <answer> Paris\n</answer>")
    assert (action.type, action.answer, action.error) == (ActionType.ANSWER, "Paris", None)
    assert parse_turn("<answer></answer>").answer == ""


def test_reasoning_is_not_read():
    action = parse_turn(f"<think>{CALL} or <answer>Rome</answer>?</think>\n<answer>Paris</answer>")
    assert (action.type, action.answer) == (ActionType.ANSWER, "Paris")
    assert action.tool_calls == ()


def test_tags_inside_json_strings_are_text():
    call = ToolCall("search", {"query": "what </tool_call> and <answer>x</answer> mean"})
    action = parse_turn(
        f"<tool_call>{json.dumps({'name': 'search', 'arguments': call.arguments})}</tool_call>"
    )
    assert action.tool_calls == (call,)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no tool call and no answer"),
        ("Paris", "no tool call and no answer"),
        ('{"name": "search", "arguments": {}}', "no tool call and no answer"),
        (CALL + "<answer>Paris</answer>", "a tool call and an answer in one turn"),
        ("<answer>a</answer><answer>b</answer>", "more than one answer"),
        ("<answer>Paris", "the answer is not closed"),
        ("Paris</answer>", "the answer is not opened"),
        ("</answer>Paris<answer>", "the answer is not opened"),
        (CALL[:-12], "the tool call is not closed after its JSON"),
        (CALL[11:], "the tool call is not opened"),
        (CALL.replace("}}", "}} x"), "the tool call is not closed after its JSON"),
        (CALL.replace("}}", "}"), "the tool call is not valid JSON"),
        ("<tool_call></tool_call>", "the tool call is not valid JSON (Expecting value"),
        ("<tool_call>[1]</tool_call>", "the tool call is not a JSON object"),
        ('<tool_call>{"arguments": {}}</tool_call>', "the tool call has no 'name'"),
        ('<tool_call>{"name": "f"}</tool_call>', "the tool call has no 'arguments'"),
        ('<tool_call>{"name": 1, "arguments": {}}</tool_call>', "'name' of the tool call is not"),
        ('<tool_call>{"name": "f", "arguments": "x"}</tool_call>', "'arguments' of the tool call"),
        ('<tool_call>{"name": "f", "arguments": {"x": NaN}}</tool_call>', "the tool call is not"),
        ('<tool_call>{"name": "f", "arguments": {"x": 1e999}}</tool_call>', "the tool call is not"),
        (
            '<tool_call>{"name": "f", "arguments": {"x": ' + "9" * 5000 + "}}</tool_call>",
            "the tool call is not valid JSON",
        ),
        (
            '<tool_call>{"name": "f", "arguments": {"x": "\\ud800"}}</tool_call>',
            "the tool call has an unpaired surrogate",
        ),
        ('<tool_call>{"name": "f", "arguments": ' + '{"a":' * 99999, "the tool call is nested"),
        (
            '<tool_call>{"name": "f", "arguments": {"x": ' + "[" * 99 + "]" * 99 + "}}</tool_call>",
            "the tool call is nested too deeply",
        ),
        (CALL + "<tool_call>{broken}</tool_call>", "the tool call is not valid JSON"),
    ],
)
def test_p29_malformed_turns_say_what_was_wrong(text, error):
    action = parse_turn(text)
    assert action.type is ActionType.MALFORMED
    assert action.error.startswith(f"could not parse: {error}")
    assert len(action.error) < 150
    assert action.text == text
    assert (action.tool_calls, action.answer) == ((), None)


def test_code_is_found_in_any_turn():
    text = "Let me run\n```python\nprint(1)\n```\nand\n```\nx\n```"
    assert parse_turn(text).code == "print(1)\n"
    assert parse_turn(text).type is ActionType.MALFORMED
    assert parse_turn(f"{text}<answer>1</answer>").code == "print(1)\n"
    assert parse_turn("<answer>1</answer>").code is None


def test_a_long_run_of_spaces_after_a_fence_is_read_fast():
    """Policies that degenerate write such turns; all other trajectories would wait."""
    started = time.process_time()
    assert parse_turn("```" + " " * 40_000).code is None
    assert time.process_time() - started < 2


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.builds(ToolCall, st.text(min_size=1), st.dictionaries(st.text(), JSON, max_size=3))


@settings(max_examples=60, deadline=None)
@given(st.lists(CALLS, min_size=1, max_size=3))
def test_calls_come_back_as_they_were_written(calls):
    action = parse_turn(write_turn(Action(ActionType.TOOL_CALL, "", tool_calls=tuple(calls))))
    assert action.type is ActionType.TOOL_CALL
    assert action.tool_calls == tuple(calls)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["<tool_call>", "</tool_call>", "<answer>", "</answer>", "</think>", CALL[11:-12]]
        )
        | st.text(max_size=5)
    ).map("".join)
)
def test_p29_any_text_is_read_as_exactly_one_type(text):
    action = parse_turn(text)
    assert action.text == text
    assert (action.type is ActionType.TOOL_CALL) == bool(action.tool_calls)
    assert (action.type is ActionType.ANSWER) == (action.answer is not None)
    assert (action.type is ActionType.MALFORMED) == (action.error is not None)

"""ReAct text, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.chat import ChatParameters, make_format
from agent_r1.chat.react import parse_turn, write_turn
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.parameters import ParameterError
from agent_r1.tools import tool
from tests.support.example_tools import search, travel

ARGUMENTS = {"search": "query", "travel": None, "now": None}
"""``search`` takes one string, the others JSON."""


def read(text):
    return parse_turn(text, ARGUMENTS)


def test_a_single_string_argument_is_written_as_it_is():
    action = read("Thought: I need France.\nAction: search[France]")
    assert action.tool_calls == (ToolCall("search", {"query": "France"}),)
    assert read("Action: search[a [b] c]").tool_calls[0].arguments == {"query": "a [b] c"}
    assert read("Action: search[]").tool_calls[0].arguments == {"query": ""}
    assert read('Action: search[{"query": "x"}]').tool_calls[0].arguments == {
        "query": '{"query": "x"}'
    }


def test_other_arguments_are_json():
    action = read('Action: travel[{"to": "Paris", "days": 3}]')
    assert action.tool_calls == (ToolCall("travel", {"to": "Paris", "days": 3}),)
    assert read("Action: now[]").tool_calls == (ToolCall("now", {}),)


def test_a_call_of_an_unknown_tool_is_still_a_call():
    assert read("Action: find[France]").tool_calls == (ToolCall("find", {"input": "France"}),)
    assert read('Action: find[{"x": 1}]').tool_calls == (ToolCall("find", {"x": 1}),)


def test_finish_gives_the_answer():
    action = read("Thought: Paris, then.\nAction: finish[ Paris ]\nThought: Done.")
    assert (action.type, action.answer) == (ActionType.ANSWER, "Paris")


def test_several_actions_are_parallel_calls_in_order():
    action = read("Action: search[a]\nAction: now[]")
    assert [call.name for call in action.tool_calls] == ["search", "now"]


def test_an_argument_may_have_lines():
    assert read("Action: search[a\nb]").tool_calls[0].arguments == {"query": "a\nb"}


def test_reasoning_is_not_read():
    action = read("<think>Action: finish[Rome]</think>\nAction: finish[Paris]")
    assert action.answer == "Paris"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no 'Action: tool[input]'"),
        ("Thought: hm", "no 'Action: tool[input]'"),
        ("I say Action: finish[Paris]", "no 'Action: tool[input]'"),
        ("Action: search", "the action is not 'tool[input]'"),
        ("Action: [x]", "the action is not 'tool[input]'"),
        ("Action: search[France", "the action does not end with ']'"),
        ("Action: search[France] and more", "the action does not end with ']'"),
        ("Action: search[France]\nObservation: It is big.", "observations come from the tools"),
        ("Action: finish[a]\nAction: finish[b]", "more than one answer"),
        ("Action: search[a]\nAction: finish[b]", "a tool call and an answer in one turn"),
        ("Action: travel[Paris]", "the tool call is not valid JSON"),
        ("Action: travel[[1]]", "'travel' takes one JSON object in its brackets"),
        ('Action: travel[{"to": 1} x]', "'travel' takes one JSON object in its brackets"),
        ('Action: travel[{"to": NaN}]', "the tool call is not valid JSON"),
        ('Action: travel[{"to": "\\ud800"}]', "the tool call has an unpaired surrogate"),
        ("Action: travel[" + '{"a":' * 99999 + "]", "the tool call is nested too deeply"),
    ],
)
def test_p29_malformed_turns_say_what_was_wrong(text, error):
    action = read(text)
    assert action.type is ActionType.MALFORMED
    assert action.error.startswith(f"could not parse: {error}")
    assert len(action.error) < 150
    assert (action.text, action.tool_calls, action.answer) == (text, (), None)


PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.dictionaries(PLAIN, PLAIN | st.integers() | st.none() | st.lists(PLAIN), max_size=3)
CALLS = st.builds(ToolCall, st.sampled_from(["travel", "now"]), VALUES) | st.builds(
    ToolCall, st.just("search"), st.fixed_dictionaries({"query": PLAIN})
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CALLS, min_size=1, max_size=3))
def test_calls_come_back_as_they_were_written(calls):
    """Except for raw arguments with a label or surrounding whitespace: they cannot be written."""
    raw = [call.arguments["query"] for call in calls if call.name == "search"]
    action = read(write_turn(Action(ActionType.TOOL_CALL, "", tool_calls=tuple(calls)), ARGUMENTS))
    if all(text == text.strip() and "\nAction:" not in text for text in raw):
        assert action.tool_calls == tuple(calls)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["Thought:", "\nAction:", "Observation:", " search[", "]", "finish[", "\n", "</think>"]
        )
        | st.text(max_size=5)
    ).map("".join)
)
def test_p29_any_text_is_read_as_exactly_one_type(text):
    action = read(text)
    assert action.text == text
    assert (action.type is ActionType.TOOL_CALL) == bool(action.tool_calls)
    assert (action.type is ActionType.ANSWER) == (action.answer is not None)
    assert (action.type is ActionType.MALFORMED) == (action.error is not None)


def test_the_tools_say_which_arguments_are_raw(tokenizer):
    chat = make_format(ChatParameters(format="react", system="", render_tools=True), tokenizer)
    prompt = tokenizer.decode(chat.prompt_ids("Where?", [search, travel]))
    assert "search[query]: Find a page." in prompt
    assert 'travel[{"to": {' in prompt
    call = Action(ActionType.TOOL_CALL, "", tool_calls=(ToolCall("search", {"query": "France"}),))
    ids = chat.render_action(call, "capital: Lima\n", [search])
    assert tokenizer.decode(ids) == ("Thought: capital: Lima\nAction: search[France]<|im_end|>")
    assert chat.parse(ids, "stop", [search]).tool_calls == call.tool_calls


def test_p04_parallel_results_are_one_message(tokenizer):
    chat = make_format(ChatParameters(format="react", system=""), tokenizer)
    ids = chat.render_action(Action(ActionType.ANSWER, "", answer="x"))
    assert tokenizer.decode(chat.observation_ids(["a", "b"], ids)) == (
        "\n<|im_start|>user\nObservation: a\nObservation: b<|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize("described", [True, False])
def test_a_tool_called_finish_is_refused(tokenizer, described):
    """Whether the prompt describes it or not: a call of it would be read as an answer."""
    chat = make_format(ChatParameters(format="react", render_tools=described), tokenizer)

    @tool(name="finish")
    def end(query: str) -> str:
        """End."""
        return query

    with pytest.raises(ParameterError, match="a tool is called 'finish'"):
        chat.prompt_ids("x", [end])


def test_actions_that_cannot_be_written_are_refused(tokenizer):
    chat = make_format(ChatParameters(format="react"), tokenizer)
    for query in (" France", "a\nAction: finish[b]"):
        call = ToolCall("search", {"query": query})
        with pytest.raises(ValueError, match="the react format cannot express"):
            chat.render_action(Action(ActionType.TOOL_CALL, "", tool_calls=(call,)), tools=[search])

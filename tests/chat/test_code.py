"""Code blocks, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_r1.chat import ChatParameters, make_format
from agent_r1.chat.code import parse_turn, write_turn
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.tools import tool


def run(code, tool="python"):
    return ToolCall(tool, {"code": code})


@pytest.mark.parametrize("fence", ["```python", "```py", "```", "  ```python  "])
def test_a_block_is_a_call_and_the_actions_code(fence):
    action = parse_turn(f"Let me see.\n{fence}\nprint(1)\nprint(2)\n```\nThat is all.")
    assert action.type is ActionType.TOOL_CALL
    assert action.tool_calls == (run("print(1)\nprint(2)"),)
    assert action.code == "print(1)\nprint(2)"


def test_blocks_in_other_languages_are_text():
    action = parse_turn("```json\n<answer>no</answer>\n```\n<answer> Paris </answer>")
    assert (action.type, action.answer, action.code) == (ActionType.ANSWER, "Paris", None)


def test_tags_inside_code_are_code():
    action = parse_turn('```python\nprint("<answer>x</answer>")\n```')
    assert action.code == 'print("<answer>x</answer>")'


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("final_answer('Paris')", "Paris"),
        ("final_answer(-3.5)", "-3.5"),
        ("final_answer(6*7)", None),
        ("x = 1\nfinal_answer(1)", None),
        ("final_answer(x)", None),
        ("final_answer(", None),
        ("final_answer('\\ud800')", None),  # cannot be saved
    ],
)
def test_a_literal_final_answer_is_the_answer(code, answer):
    action = parse_turn(f"```python\n{code}\n```")
    assert action.answer == answer
    assert action.code == (code if answer is None else None)


def test_reasoning_is_not_read():
    action = parse_turn("<think>\n```python\n1\n```\n</think>\n<answer>Paris</answer>")
    assert (action.type, action.code) == (ActionType.ANSWER, None)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no block of code (```python) and no answer (<answer>)"),
        ("print(1)", "no block of code (```python) and no answer (<answer>)"),
        ("```python\nprint(1)", "the block of code is not closed with ```"),
        ("```python\n1\n```\n```python\n2\n```", "more than one block of code"),
        ("```python\n1\n```\n<answer>1</answer>", "code and an answer in one turn"),
        ("<answer>1", "the answer is not closed"),
        ("<answer>1</answer><answer>2</answer>", "more than one answer"),
    ],
)
def test_p29_malformed_turns_say_what_was_wrong(text, error):
    action = parse_turn(text)
    assert action.type is ActionType.MALFORMED
    assert action.error.startswith(f"could not parse: {error}")
    assert (action.text, action.tool_calls, action.answer, action.code) == (text, (), None, None)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["x", "\n", " ", "`", "</think>", "final"]) | st.text(max_size=6)))
def test_code_comes_back_as_it_was_written(parts):
    """Except for code that holds the end of a block, or of reasoning."""
    code = "".join(parts)
    action = parse_turn(write_turn(Action(ActionType.TOOL_CALL, "", tool_calls=(run(code),))))
    if "```" not in code and "</think>" not in code:
        assert action.code == code
        assert action.tool_calls == (run(code),)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(["```python\n", "\n```", "<answer>", "</answer>", "final_answer(1)", "\n"])
        | st.text(max_size=5)
    ).map("".join)
)
def test_p29_any_text_is_read_as_exactly_one_type(text):
    action = parse_turn(text)
    assert (action.type is ActionType.TOOL_CALL) == bool(action.tool_calls)
    assert (action.type is ActionType.ANSWER) == (action.answer is not None)
    assert (action.type is ActionType.MALFORMED) == (action.error is not None)


@tool
def execute(code: str) -> str:
    """Run a program.

    Args:
        code: Python.
    """
    return code


def test_the_code_goes_to_the_tool_that_takes_code(tokenizer):
    chat = make_format(ChatParameters(format="code", system="", render_tools=True), tokenizer)
    assert '"name": "execute"' in tokenizer.decode(chat.prompt_ids("x", [execute]))
    action = Action(ActionType.TOOL_CALL, "", tool_calls=(run("print(1)", "execute"),))
    ids = chat.render_action(action, "I compute.", [execute])
    assert tokenizer.decode(ids) == "I compute.\n```python\nprint(1)\n```<|im_end|>"
    assert chat.parse(ids, "stop", [execute]).tool_calls == action.tool_calls
    assert chat.parse(ids, "stop").tool_calls == (run("print(1)"),)


def test_actions_that_cannot_be_written_are_refused(tokenizer):
    chat = make_format(ChatParameters(format="code"), tokenizer)
    for call in (run("a\n```\nb"), ToolCall("search", {"query": "x"})):
        with pytest.raises(ValueError, match="the code format cannot express"):
            chat.render_action(Action(ActionType.TOOL_CALL, "", tool_calls=(call,)))

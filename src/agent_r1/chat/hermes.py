"""The Hermes call format, which Qwen and many other models use.

A turn is one or more ``<tool_call>{"name": …, "arguments": {…}}</tool_call>`` (parallel calls, run
together), or exactly one ``<answer>…</answer>``. Text around either is allowed. Everything before
the last ``</think>`` is reasoning, and is not read.

A turn is malformed, and the error says why, if it has neither; a call that is not JSON, is not
closed, or lacks its name or its arguments; more than one answer, or one that is not closed; an
answer beside a call (it was written before the result was known). One broken call makes the whole
turn malformed: no turn is half executed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_r1.chat.call_json import Malformed, read_call, read_value, skip_whitespace, write_value
from agent_r1.chat.reasoning import after_reasoning
from agent_r1.chat.turns import TextFormat
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.tools import ToolSpec

CALL, END_CALL = "<tool_call>", "</tool_call>"
ANSWER, END_ANSWER = "<answer>", "</answer>"
_CODE = re.compile(r"```[^\S\n]*+\w*+[^\S\n]*+\n(.*?)```", re.DOTALL)
"""Possessive: backtracking over a long run of spaces takes minutes, and blocks all others."""


class HermesFormat(TextFormat):
    """See `agent_r1.chat.turns.ChatFormat`."""

    name = "hermes"
    markup = (CALL, END_CALL, ANSWER, END_ANSWER)
    # What Qwen2.5's own template writes, word for word: chat models were trained on it. Only the
    # last line is ours: they were not trained on the tags of an answer.
    instructions = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>

When you know the answer, call no function: <answer>42</answer>"""

    def read(self, text: str, tools: Sequence[ToolSpec] = ()) -> Action:
        """See `parse_turn`."""
        return parse_turn(text)

    def write(self, action: Action, thought: str = "", tools: Sequence[ToolSpec] = ()) -> list[str]:
        """The thought, then `write_turn`."""
        return self._marked(thought + write_turn(action))


def write_turn(action: Action) -> str:
    """The text of a turn from its calls or its answer."""
    if action.type is ActionType.ANSWER:
        return f"{ANSWER}{action.answer}{END_ANSWER}"
    calls = [write_value({"name": c.name, "arguments": c.arguments}) for c in action.tool_calls]
    return "\n".join(f"{CALL}{call}{END_CALL}" for call in calls)


def parse_turn(text: str) -> Action:
    """Read a whole turn (without its stop token); never fails."""
    said = after_reasoning(text)
    block = _CODE.search(said)
    code = block[1] if block else None
    try:
        calls, rest = read_calls(said)
        answer = read_answer(rest)
        if calls and answer is not None:
            raise Malformed("a tool call and an answer in one turn")
        if not calls and answer is None:
            raise Malformed("no tool call and no answer")
    except Malformed as error:
        return Action(ActionType.MALFORMED, text, code=code, error=f"could not parse: {error}")
    if calls:
        return Action(ActionType.TOOL_CALL, text, tool_calls=tuple(calls), code=code)
    return Action(ActionType.ANSWER, text, answer=answer, code=code)


def read_answer(text: str) -> str | None:
    """The text between the answer's tags; None without tags.

    Raises:
        Malformed: there is more than one answer, or one that is not opened or not closed.
    """
    opened, closed = text.count(ANSWER), text.count(END_ANSWER)
    if not opened and not closed:
        return None
    if opened > 1 or closed > 1:
        raise Malformed("more than one answer")
    begin, end = text.find(ANSWER), text.find(END_ANSWER)
    if begin < 0 or end < begin:
        raise Malformed("the answer is not closed" if end < 0 else "the answer is not opened")
    return text[begin + len(ANSWER) : end].strip()


def answer_blocks(text: str) -> list[str]:
    """The text of each ``<answer>…</answer>``, without surrounding whitespace.

    In one pass: a lazy pattern reads to the end of the text for every tag that is not closed.
    """
    blocks, begin = [], text.find(ANSWER)
    while begin >= 0 and (end := text.find(END_ANSWER, begin)) >= 0:
        blocks.append(text[begin + len(ANSWER) : end].strip())
        begin = text.find(ANSWER, end)
    return blocks


def read_calls(text: str) -> tuple[list[ToolCall], str]:
    """The calls of a turn, and the text outside them.

    Raises:
        Malformed: one of them cannot be read.
    """
    calls, rest, position = [], [], 0
    while (begin := text.find(CALL, position)) >= 0:
        rest.append(text[position:begin])
        value, end = read_value(text, skip_whitespace(text, begin + len(CALL)))
        end = skip_whitespace(text, end)
        if not text.startswith(END_CALL, end):
            raise Malformed("the tool call is not closed after its JSON")
        calls.append(read_call(value))
        position = end + len(END_CALL)
    rest.append(text[position:])
    if any(END_CALL in part for part in rest):
        raise Malformed("the tool call is not opened")
    return calls, "\n".join(rest)

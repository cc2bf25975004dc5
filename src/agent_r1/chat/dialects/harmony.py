"""Harmony's channels, as gpt-oss writes them.

A turn is one or more messages, ``header<|message|>text``, with ``<|end|><|start|>assistant``
between them:

1. ``<|channel|>analysis`` is reasoning, ``<|channel|>commentary`` without a recipient is ordinary
   text.
2. A header with ``to=functions.NAME`` is a call of that tool; its text is the arguments in JSON,
   and ``<|call|>`` ends the turn. So there is one call per turn.
3. ``<|channel|>final`` is the answer, and ``<|return|>`` ends the turn.

Not proven: the template of gpt-oss writes ``<|end|>`` after an earlier answer where ``<|return|>``
was sampled, and removes the reasoning of earlier calls once an answer follows. Both concern what
comes after an answer, where an episode has ended. An environment that continues after an answer
gets the tokens as they were sampled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from agent_r1.chat.call_json import Malformed, check_json, read_value, skip_whitespace, write_value
from agent_r1.chat.dialects.base import Dialect, answered, assistant_message, called, malformed
from agent_r1.chat.encoding import Markup
from agent_r1.chat.reasoning import Spans
from agent_r1.mdp import Action, ActionType, ToolCall

CHANNEL, TEXT, END, NEXT = "<|channel|>", "<|message|>", "<|end|>", "<|start|>assistant"
_RECIPIENT = re.compile(r"to=([^\s<]+)")
_FUNCTION = "functions."


class _Message(NamedTuple):
    begin: int
    header: str
    text: int
    """Where its text begins."""
    end: int
    """Where the next message's header begins, or the turn ends."""
    closed: bool


class HarmonyDialect(Dialect):
    """See `Dialect`."""

    name = "harmony"
    markup = (CHANNEL, TEXT, END, "<|start|>", "<|constrain|>")
    ends = ("<|call|>", "<|return|>")
    answer_end = "<|return|>"
    thought = "One thought."

    def message(self, action: Action, thought: str = "") -> dict[str, Any]:
        """The thought is the message's ``thinking``."""
        return assistant_message(action, "") | ({"thinking": thought} if thought else {})

    def write(self, action: Action, thought: str = "") -> list[str]:
        """The thought in a message of its own, then the call or the answer."""
        analysis = [Markup(f"{CHANNEL}analysis{TEXT}"), thought, Markup(END + NEXT)]
        pieces = analysis if thought else []
        if action.type is ActionType.ANSWER:
            return [*pieces, Markup(f"{CHANNEL}final{TEXT}"), action.answer or ""]
        for call in action.tool_calls:
            pieces = [*pieces, f" to={_FUNCTION}{call.name}"]
            pieces += [Markup(f"{CHANNEL}commentary json{TEXT}"), write_value(call.arguments)]
        return pieces

    def read(self, text: str) -> Action:
        """The turn's call or its answer."""
        try:
            for one in _messages(text):
                recipient = _RECIPIENT.search(one.header)
                if recipient:
                    return called(text, _call(recipient[1], text[one.text :]))
                if _channel(one.header) == "final":
                    return answered(text, text[one.text :].strip())
                if not one.closed:
                    break
            raise Malformed("no call (to=functions.…) and no message in the channel final")
        except Malformed as error:
            return malformed(text, error)

    def reasoning(self, text: str) -> Spans:
        """The messages in the channel analysis, up to the header of the next one."""
        try:
            return [
                (one.begin, one.end)
                for one in _messages(text)
                if one.closed and _channel(one.header) == "analysis"
            ]
        except Malformed:
            return []


def _messages(text: str) -> Iterator[_Message]:
    """The turn's messages. The last one is open; a call or an answer takes the rest of the turn.

    Raises:
        Malformed: there is text outside of a message.
    """
    begin = 0
    while begin < len(text):
        start = text.find(TEXT, begin)
        if start < 0:
            raise Malformed(f"text outside of a message: write {CHANNEL}…{TEXT} before it")
        header, start = text[begin:start], start + len(TEXT)
        last = _RECIPIENT.search(header) or _channel(header) == "final"
        close = -1 if last else text.find(END, start)
        following = close + len(END)
        if close >= 0 and text.startswith(NEXT, following):
            following += len(NEXT)
        end = following if close >= 0 else len(text)
        yield _Message(begin, header, start, end, close >= 0)
        begin = end


def _channel(header: str) -> str:
    words = header.partition(CHANNEL)[2].split()
    return words[0].partition("<")[0] if words else ""


def _call(recipient: str, text: str) -> ToolCall:
    name = recipient.removeprefix(_FUNCTION)
    if name == recipient:
        raise Malformed(f"'{recipient[:30]}' is no tool: calls are to functions.NAME")
    value, end = read_value(text, skip_whitespace(text, 0))
    if not isinstance(value, dict):
        raise Malformed("the arguments of the tool call are not a JSON object")
    if skip_whitespace(text, end) < len(text):
        raise Malformed("text after the tool call: one call per turn, and nothing behind it")
    check_json(value)
    return ToolCall(name, value)

"""The Hermes call format, as Qwen and many others speak it.

A turn is ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, one or more of them (parallel
calls, run together), or ``<answer>…</answer>``, exactly one. Words around either are allowed, and
what stands before the last ``</think>`` is reasoning and not read.

Malformed, with an error that says so: neither; a call that is not JSON, is not closed, or lacks its
name or its arguments; more than one answer or one that is not closed; an answer beside a call (it
was written before the result was known). One broken call makes the whole turn malformed: no turn
is half executed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

from transformers import PreTrainedTokenizerFast

from agent_r1.chat.base import ChatParameters, observation_messages
from agent_r1.chat.template import ChatTemplate
from agent_r1.mdp import Action, ActionType, ToolCall
from agent_r1.tools import ToolSpec
from agent_r1.tools.unicode import valid_unicode

CALL, END_CALL = "<tool_call>", "</tool_call>"
ANSWER, END_ANSWER = "<answer>", "</answer>"
_TAGS = re.compile("(" + "|".join((CALL, END_CALL, ANSWER, END_ANSWER)) + ")")
_MAX_DEPTH = 64
"""Levels of JSON in a call; Python's own parser gives up at about a thousand."""
_CODE = re.compile(r"```[^\S\n]*\w*[^\S\n]*\n(.*?)```", re.DOTALL)

_TOOLS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{schemas}
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
"""What Qwen2.5's own template writes for tools, word for word: chat models were trained on it."""


class HermesFormat:
    """See `agent_r1.chat.base.ChatFormat`."""

    def __init__(self, params: ChatParameters, tokenizer: PreTrainedTokenizerFast):
        """
        Raises:
            ChatTemplateError: the tokenizer's chat template cannot be extended turn by turn.
        """
        self._params = params
        self._tokenizer = tokenizer
        self._template = ChatTemplate(tokenizer)
        self._encoder = self._template.encoder
        # A base model may end its text where a chat model ends its turn.
        ends = (self._template.stop_token_id, tokenizer.eos_token_id)
        self.stop_token_ids = tuple(dict.fromkeys(token for token in ends if token is not None))

    def prompt_ids(
        self, observation: Mapping[str, Any] | str, tools: Sequence[ToolSpec]
    ) -> list[int]:
        """The context before the first action."""
        text = "\n\n".join(observation_messages(observation))
        return self._encoder.encode(self._template.opening(self._system(tools)), [text])

    def observation_ids(
        self, observation: Mapping[str, Any] | Sequence[str] | str, action_token_ids: Sequence[int]
    ) -> list[int]:
        """What is appended after an action; a message per result of parallel calls."""
        messages = observation_messages(observation)
        layout = self._template.continuation(len(messages))
        if action_token_ids and action_token_ids[-1] == self._template.stop_token_id:
            layout = layout[1:]  # the action sampled it: it is there already
        return self._encoder.encode(layout, messages)

    def parse(self, token_ids: Sequence[int], finish_reason: Literal["stop", "length"]) -> Action:
        """Read an action from its ids; ``length`` makes it `ActionType.CUT`, unread."""
        ids = list(token_ids)
        if ids and ids[-1] in self.stop_token_ids:
            ids.pop()
        text = self._tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        if finish_reason == "length":
            return Action(ActionType.CUT, text, error="cut: the turn reached its token limit")
        return parse_turn(text)

    def render_action(self, action: Action, thought: str = "") -> list[int]:
        """The ids of a scripted action: its ``text`` if it has one, else its calls or answer."""
        text = action.text or thought + write_turn(action)
        if action.type not in (ActionType.CUT, ActionType.NONE):
            read = parse_turn(text)
            if (read.type, read.tool_calls, read.answer) != (
                action.type,
                action.tool_calls,
                action.answer,
            ):
                raise ValueError(f"the hermes format cannot express {action}: it reads as {read}")
        # Only the format's own tags are markup; a query may spell a control token.
        layout = [
            part
            for piece in _TAGS.split(text)
            for part in (self._encoder.layout([piece]) if _TAGS.fullmatch(piece) else (piece,))
        ]
        if action.type not in (ActionType.CUT, ActionType.NONE):
            layout.append(self._template.stop_token_id)
        return self._encoder.encode(tuple(layout))

    def _system(self, tools: Sequence[ToolSpec]) -> str:
        if not self._params.render_tools or not tools:
            return self._params.system
        schemas = "\n".join(json.dumps(spec.schema, ensure_ascii=False) for spec in tools)
        parts = (self._params.system, _TOOLS.format(schemas=schemas))
        return "\n\n".join(part for part in parts if part)


class _Malformed(Exception):
    """The turn cannot be read; the message is for the agent."""


def write_turn(action: Action) -> str:
    """The text of a turn from its calls or its answer."""
    if action.type is ActionType.ANSWER:
        return f"{ANSWER}{action.answer}{END_ANSWER}"
    calls = [
        json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
        for call in action.tool_calls
    ]
    return "\n".join(f"{CALL}{call}{END_CALL}" for call in calls)


def parse_turn(text: str) -> Action:
    """Read a whole turn (without its stop token); never fails."""
    said = text.rpartition("</think>")[2]
    block = _CODE.search(said)
    code = block[1] if block else None
    try:
        calls, rest = _read_calls(said)
        answer = _read_answer(rest)
        if calls and answer is not None:
            raise _Malformed("a tool call and an answer in one turn")
        if not calls and answer is None:
            raise _Malformed("no tool call and no answer")
    except _Malformed as error:
        return Action(ActionType.MALFORMED, text, code=code, error=f"could not parse: {error}")
    if calls:
        return Action(ActionType.TOOL_CALL, text, tool_calls=tuple(calls), code=code)
    return Action(ActionType.ANSWER, text, answer=answer, code=code)


def _read_answer(text: str) -> str | None:
    opened, closed = text.count(ANSWER), text.count(END_ANSWER)
    if not opened and not closed:
        return None
    if opened > 1 or closed > 1:
        raise _Malformed("more than one answer")
    begin, end = text.find(ANSWER), text.find(END_ANSWER)
    if begin < 0 or end < begin:
        raise _Malformed("the answer is not closed" if end < 0 else "the answer is not opened")
    return text[begin + len(ANSWER) : end].strip()


def _read_calls(text: str) -> tuple[list[ToolCall], str]:
    """The calls of a turn, and the text that is not in them."""
    calls, rest, position = [], [], 0
    while (begin := text.find(CALL, position)) >= 0:
        rest.append(text[position:begin])
        value, end = _read_json(text, _skip_blanks(text, begin + len(CALL)))
        end = _skip_blanks(text, end)
        if not text.startswith(END_CALL, end):
            raise _Malformed("the tool call is not closed after its JSON")
        calls.append(_read_call(value))
        position = end + len(END_CALL)
    rest.append(text[position:])
    if any(END_CALL in part for part in rest):
        raise _Malformed("the tool call is not opened")
    return calls, "\n".join(rest)


def _skip_blanks(text: str, position: int) -> int:
    return position + len(text[position:]) - len(text[position:].lstrip())


def _read_json(text: str, position: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise _Malformed(
            f"the tool call is not valid JSON ({error.msg}, character {error.pos - position})"
        ) from None
    except RecursionError:
        raise _Malformed("the tool call is nested too deeply") from None
    except ValueError as error:
        raise _Malformed(f"the tool call is not valid JSON ({str(error)[:60]})") from None


def _read_call(value: Any) -> ToolCall:
    if not isinstance(value, dict):
        raise _Malformed("the tool call is not a JSON object")
    for key, kind, about in (("name", str, "a string"), ("arguments", dict, "an object")):
        if key not in value:
            raise _Malformed(f"the tool call has no '{key}'")
        if not isinstance(value[key], kind):
            raise _Malformed(f"'{key}' of the tool call is not {about}")
    _check(value, _MAX_DEPTH)
    return ToolCall(value["name"], value["arguments"])


def _check(value: Any, depth: int) -> None:
    """Refuse JSON that cannot be saved: unpaired surrogates, endless nesting."""
    if not depth:
        raise _Malformed("the tool call is nested too deeply")
    if isinstance(value, str) and valid_unicode(value) != value:
        raise _Malformed("the tool call has an unpaired surrogate")
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for part in value:
            _check(part, depth - 1)


def _finite(digits: str) -> float:
    """JSON has no infinity: ``1e999`` must not become one."""
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)

"""``{"name": …, "parameters": …}``, as the templates of Llama 3.1 and 3.2 write it.

A turn that begins with ``{`` is a call. Text before a call is allowed only if ``<|python_tag|>``
separates them. One call per turn: the templates refuse more. A turn without a call is the answer.
"""

from __future__ import annotations

from typing import Any

from agent_r1.chat.call_json import Malformed, read_call, read_value, skip_whitespace, write_value
from agent_r1.chat.dialects.base import (
    Dialect,
    answered,
    assistant_message,
    called,
    malformed,
    spoken_answer,
    thinking,
    write_answer,
)
from agent_r1.chat.encoding import Markup
from agent_r1.chat.reasoning import after_reasoning
from agent_r1.mdp import Action, ActionType, ToolCall

PYTHON_TAG = "<|python_tag|>"


class LlamaDialect(Dialect):
    """See `Dialect`."""

    name = "llama"
    markup = (PYTHON_TAG,)
    ends = ("<|eot_id|>", "<|eom_id|>")

    def message(self, action: Action, thought: str = "") -> dict[str, Any]:
        """The template leaves out text beside a call."""
        return assistant_message(action, "" if action.tool_calls else thought)

    def write(self, action: Action, thought: str = "") -> list[str]:
        """The call alone, or after a thought and the tag."""
        if action.type is ActionType.ANSWER:
            return write_answer(action, thought)
        calls = [
            write_value({"name": call.name, "parameters": call.arguments})
            for call in action.tool_calls
        ]
        return [*([*thinking(thought), Markup(PYTHON_TAG)] if thought else []), "; ".join(calls)]

    def read(self, text: str) -> Action:
        """The call, or the answer if there is no call."""
        said = after_reasoning(text)
        _, tag, tagged = said.partition(PYTHON_TAG)
        try:
            if said.lstrip().startswith("{"):
                return called(text, self._call(said))
            return called(text, self._call(tagged)) if tag else answered(text, spoken_answer(text))
        except Malformed as error:
            return malformed(text, error)

    def _call(self, text: str) -> ToolCall:
        value, end = read_value(text, skip_whitespace(text, 0))
        if skip_whitespace(text, end) < len(text):
            raise Malformed("text after the tool call: one call per turn, and nothing behind it")
        return read_call(value, "parameters")

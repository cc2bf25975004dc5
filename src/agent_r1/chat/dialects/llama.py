"""``{"name": …, "parameters": …}``, as the templates of Llama 3.1 and 3.2 write it.

A turn that begins with ``{`` is a call; words may stand before it only if ``<|python_tag|>`` comes
between. One call per turn: the templates refuse more. A turn without a call is the answer.
"""

from __future__ import annotations

from typing import Any

from agent_r1.chat.call_json import (
    Malformed,
    read_call,
    read_call_json,
    skip_blanks,
    write_call_json,
)
from agent_r1.chat.dialects.base import (
    answered,
    assistant_message,
    called,
    malformed,
    spoken_answer,
    thinking,
    write_answer,
)
from agent_r1.chat.encoding import Markup
from agent_r1.chat.reasoning import Spans, after_reasoning, think_spans
from agent_r1.mdp import Action, ActionType, ToolCall

PYTHON_TAG = "<|python_tag|>"


class LlamaDialect:
    """See `agent_r1.chat.dialects.base.Dialect`."""

    name = "llama"
    markup = (PYTHON_TAG,)
    ends = ("<|eot_id|>", "<|eom_id|>")
    answer_end = None
    parallel = False
    thought = ""

    def message(self, action: Action, thought: str = "") -> dict[str, Any]:
        """The template leaves out what is said beside a call."""
        return assistant_message(action, "" if action.tool_calls else thought)

    def write(self, action: Action, thought: str = "") -> list[str]:
        """The call alone, or after a thought and the tag."""
        if action.type is ActionType.ANSWER:
            return write_answer(action, thought)
        calls = [
            write_call_json({"name": call.name, "parameters": call.arguments})
            for call in action.tool_calls
        ]
        return [*([*thinking(thought), Markup(PYTHON_TAG)] if thought else []), "; ".join(calls)]

    def read(self, text: str) -> Action:
        """A call, or else the answer."""
        said = after_reasoning(text)
        _, tag, tagged = said.partition(PYTHON_TAG)
        try:
            if said.lstrip().startswith("{"):
                return called(text, self._call(said))
            return called(text, self._call(tagged)) if tag else answered(text, spoken_answer(text))
        except Malformed as error:
            return malformed(text, error)

    def _call(self, text: str) -> ToolCall:
        value, end = read_call_json(text, skip_blanks(text, 0))
        if skip_blanks(text, end) < len(text):
            raise Malformed("text after the tool call: one call per turn, and nothing behind it")
        return read_call(value, "parameters")

    def reasoning(self, text: str) -> Spans:
        """Up to the last ``</think>``."""
        return think_spans(text)

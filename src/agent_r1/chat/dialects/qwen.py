"""``<tool_call>`` tags around JSON, as the templates of Qwen2.5, Qwen3 and Hermes write them."""

from __future__ import annotations

from typing import Any

from agent_r1.chat.call_json import Malformed, write_value
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
from agent_r1.chat.hermes import CALL, END_CALL, read_calls
from agent_r1.chat.reasoning import after_reasoning
from agent_r1.mdp import Action, ActionType


class QwenDialect(Dialect):
    """A turn without calls is the answer."""

    name = "qwen"
    markup = (CALL, END_CALL)
    parallel = True
    thought = "Plain words."

    def message(self, action: Action, thought: str = "") -> dict[str, Any]:
        """The thought is the message's content."""
        return assistant_message(action, thought.rstrip("\n") if action.tool_calls else thought)

    def write(self, action: Action, thought: str = "") -> list[str]:
        """A call per line, between tags."""
        if action.type is ActionType.ANSWER:
            return write_answer(action, thought)
        pieces = thinking(thought.rstrip("\n") + "\n") if thought.strip() else []
        for number, call in enumerate(action.tool_calls):
            json = write_value({"name": call.name, "arguments": call.arguments})
            pieces += ["\n" if number else "", Markup(CALL), f"\n{json}\n", Markup(END_CALL)]
        return pieces

    def read(self, text: str) -> Action:
        """The calls, or the answer if there are no calls."""
        try:
            calls, _ = read_calls(after_reasoning(text))
            return called(text, *calls) if calls else answered(text, spoken_answer(text))
        except Malformed as error:
            return malformed(text, error)

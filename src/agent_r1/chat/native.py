"""The model's own tool calls: what its chat template writes for ``tools=`` and ``tool_calls``.

1. The template decides where and how tools appear in the prompt.
2. A call is written in the dialect of the template (`agent_r1.chat.dialects`), which is found by
   comparing renderings; a template that matches no dialect is refused.
3. A turn without a call is the answer: its ``<answer>`` block, or else all of it but the reasoning.
4. Results of calls come back in the role ``tool``, all of a turn in one render. What the
   environment replies to a turn without a call (that it could not be parsed) has a role that the
   template allows there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from agent_r1.chat.encoding import Layout
from agent_r1.chat.native_template import find_dialect
from agent_r1.chat.reasoning import Spans
from agent_r1.chat.rendering import Part
from agent_r1.chat.turns import ChatFormat
from agent_r1.mdp import Action, ActionType
from agent_r1.parameters import ParameterError
from agent_r1.tools import ToolSpec


class NativeFormat(ChatFormat):
    """See `agent_r1.chat.turns.ChatFormat`."""

    name = "native"

    def _prepare(self) -> tuple[int, ...]:
        self._template = find_dialect(self._renderer, self._params.reasoning)
        self.dialect = self._template.dialect
        self.markup = self.dialect.markup
        own = self._template.after_call(1)[0]
        assert isinstance(own, int)  # the template refuses anything else
        ends = [self._encoder.control(text) for text in self.dialect.ends]
        return tuple(dict.fromkeys(token for token in (own, *ends) if token is not None))

    def _opening(self, tools: Sequence[ToolSpec]) -> tuple[Layout, list[str]]:
        schemas = [spec.schema for spec in tools]
        for schema in schemas:
            spelt = self._encoder.spells_control(json.dumps(schema, ensure_ascii=False))
            if spelt is not None:  # the template would make it a control token
                raise ParameterError(
                    f"the schema of tool '{schema['function']['name']}' spells the control token "
                    f"'{spelt}': change its description, or choose another chat.format"
                )
        return self._template.opening(self._params.system, schemas), []

    def _following(self, messages: list[str], action_token_ids: Sequence[int]) -> Part:
        action = self.read(self._said(action_token_ids))
        if action.type is not ActionType.TOOL_CALL:
            text = "\n\n".join(messages)
            return self._template.after_words(1), [text, ""]
        return self._template.after_call(len(messages)), [*messages, action.tool_calls[-1].name]

    def read(self, text: str, tools: Sequence[ToolSpec] = ()) -> Action:
        """The turn's calls, or its answer if it has no calls."""
        return self.dialect.read(text)

    def write(self, action: Action, thought: str = "", tools: Sequence[ToolSpec] = ()) -> list[str]:
        """The turn as the template writes it."""
        return self.dialect.write(action, thought)

    def reasoning(self, text: str) -> Spans:
        """The characters of a turn that are reasoning."""
        return self.dialect.reasoning(text)

    def _end_of(self, action: Action) -> int:
        own = self.dialect.answer_end if action.type is ActionType.ANSWER else None
        end = self._encoder.control(own) if own else None
        return self.stop_token_ids[0] if end is None else end

"""What a call format is, and what all share: from the text of a turn to its tokens, and back.

A format is a subclass that says how a turn is read and written (`ChatFormat.read`,
`ChatFormat.write`) and what surrounds it. For most, a turn is text in the template's assistant
message (`TextFormat`); the template's own tool calls are not (`agent_r1.chat.native`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from transformers import PreTrainedTokenizerFast

from agent_r1.chat.base import ChatParameters, observation_messages
from agent_r1.chat.encoding import Layout, marked
from agent_r1.chat.reasoning import END_OF_THINKING, THINKING, Spans, think_spans, token_spans
from agent_r1.chat.rendering import Part, Renderer, mark
from agent_r1.chat.template import ChatTemplate
from agent_r1.mdp import Action, ActionType
from agent_r1.tools import ToolSpec

_UNSPOKEN = (ActionType.CUT, ActionType.NONE)
"""Actions that are not read and do not have a stop token."""


class ChatFormat:
    """Writes and reads the turns of one agent, in token ids."""

    name: ClassVar[str]
    markup: Sequence[str] = ()
    """The format's own tags: a control token where the tokenizer has one for it."""

    def __init__(self, params: ChatParameters, tokenizer: PreTrainedTokenizerFast):
        """
        Raises:
            ChatTemplateError: the tokenizer's chat template cannot be extended turn by turn.
        """
        self._params = params
        self._tokenizer = tokenizer
        self._renderer = Renderer(tokenizer, params.date, params.template_arguments)
        self._encoder = self._renderer.encoder
        self._turn_ends = self._prepare()
        # A base model may end its text where a chat model ends its turn.
        ends = (*self._turn_ends, tokenizer.eos_token_id)
        self.stop_token_ids = tuple(dict.fromkeys(token for token in ends if token is not None))
        """Sampling one of these ends an action. The first is the template's own end of turn."""

    # --- what a format says ------------------------------------------------------------------

    def _prepare(self) -> tuple[int, ...]:
        """Take the template apart. Returns the tokens that end a turn, the template's own first."""
        raise NotImplementedError

    def _opening(self, tools: Sequence[ToolSpec]) -> tuple[Layout, list[str]]:
        """The layout before the first action, and the contents of its slots except the first."""
        raise NotImplementedError

    def _following(self, messages: list[str], action_token_ids: Sequence[int]) -> Part:
        """The layout after an action, stop token first, and its contents."""
        raise NotImplementedError

    def read(self, text: str, tools: Sequence[ToolSpec] = ()) -> Action:
        """A whole turn (without its stop token) as an action; never fails."""
        raise NotImplementedError

    def write(self, action: Action, thought: str = "", tools: Sequence[ToolSpec] = ()) -> list[str]:
        """The turn that makes these calls or gives this answer, with its tags as `Markup`."""
        raise NotImplementedError

    def reasoning(self, text: str) -> Spans:
        """The characters of a turn that are reasoning."""
        return think_spans(text)

    def _end_of(self, action: Action) -> int:
        """The stop token of an action."""
        return self.stop_token_ids[0]

    # --- what all formats share ----------------------------------------------------------------

    def prompt_ids(
        self, observation: Mapping[str, Any] | str, tools: Sequence[ToolSpec]
    ) -> list[int]:
        """The context before the first action: system, first observation, assistant header."""
        layout, contents = self._opening(tools)
        text = "\n\n".join(observation_messages(observation))
        return self._encoder.encode(layout, [text, *contents])

    def observation_ids(
        self, observation: Mapping[str, Any] | Sequence[str] | str, action_token_ids: Sequence[int]
    ) -> list[int]:
        """The ids to append after an action: the end of its turn, unless the action sampled it, the
        observation (all results of parallel calls), and the next assistant header. All of them are
        context."""
        messages = observation_messages(observation)
        layout, contents = self._following(messages, action_token_ids)
        if action_token_ids and action_token_ids[-1] in self._turn_ends:
            layout = layout[1:]  # the action sampled the stop token
        return self._encoder.encode(layout, contents)

    def parse(
        self,
        token_ids: Sequence[int],
        finish_reason: Literal["stop", "length"],
        tools: Sequence[ToolSpec] = (),
    ) -> Action:
        """Read an action; never fails. With ``length`` it is an unread `ActionType.CUT`.

        ``tools`` is for formats that do not write the names of arguments.
        """
        text = self._said(token_ids)
        if finish_reason == "length":
            return Action(ActionType.CUT, text, error="cut: the turn reached its token limit")
        return self.read(text, tools)

    def render_action(
        self, action: Action, thought: str = "", tools: Sequence[ToolSpec] = ()
    ) -> list[int]:
        """The ids that a policy would sample for this action, including the stop token unless the
        action is cut. For scripted agents.

        Args:
            action: its ``text`` is the whole turn; if that is empty, its calls or its answer are.
            thought: text before the calls or the answer.
            tools: as for `parse`.

        Raises:
            ValueError: the format cannot express the action.
        """
        unspoken = action.type in _UNSPOKEN
        if action.text or unspoken:
            pieces = self._marked(action.text or thought)
        else:
            pieces = self.write(action, thought, tools)
        if not unspoken:
            read = self.read("".join(pieces), tools)
            if (read.type, read.tool_calls, read.answer) != (
                action.type,
                action.tool_calls,
                action.answer,
            ):
                raise ValueError(
                    f"the {self.name} format cannot express {_summary(action)}: it reads as "
                    f"{_summary(read)}"
                )
        layout = self._encoder.pieces(pieces)
        return self._encoder.encode(layout if unspoken else (*layout, self._end_of(action)))

    def forgotten(self, action_token_ids: Sequence[int]) -> Spans:
        """The tokens of an action that later actions do not see, as ``[begin, end)`` positions: its
        reasoning with ``chat.reasoning: drop``, otherwise none."""
        dropped = self._params.reasoning == "drop"
        return self.reasoning_spans(action_token_ids) if dropped else []

    def reasoning_spans(self, action_token_ids: Sequence[int]) -> Spans:
        """The tokens of an action that are reasoning, as ``[begin, end)`` positions."""
        spans = self.reasoning(self._said(action_token_ids))
        return token_spans(self._decode, list(action_token_ids), spans) if spans else []

    def _said(self, token_ids: Sequence[int]) -> str:
        ids = list(token_ids)
        if ids and ids[-1] in self.stop_token_ids:
            ids.pop()
        return self._decode(ids)

    def _decode(self, token_ids: Sequence[int]) -> str:
        text = self._tokenizer.decode(
            list(token_ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        assert isinstance(text, str)  # a list only for several sequences
        return text

    def _marked(self, text: str) -> list[str]:
        """The text of a turn, its tags as `Markup`: a query may spell a control token."""
        return marked(text, (*self.markup, THINKING, END_OF_THINKING))


class TextFormat(ChatFormat):
    """A turn is the text of an assistant message; tools are explained in the system message."""

    roles: Sequence[str] = ("tool", "user")
    """Roles that an observation may have, the best first."""
    instructions: str = ""
    """Explains the syntax, with ``{tools}`` in place of the tools. Its tags are control tokens."""

    def describe(self, tools: Sequence[ToolSpec]) -> str:
        """The tools, for ``{tools}``: plain text, whatever a schema says."""
        return "\n".join(json.dumps(spec.schema, ensure_ascii=False) for spec in tools)

    def observations(self, messages: list[str]) -> list[str]:
        """An observation's messages as this format writes them."""
        return messages

    def _prepare(self) -> tuple[int, ...]:
        self.template = ChatTemplate(self._renderer, self.roles, self._params.reasoning)
        return (self.template.stop_token_id,)

    def _opening(self, tools: Sequence[ToolSpec]) -> tuple[Layout, list[str]]:
        if not self._params.render_tools or not tools:
            return self.template.opening(self._params.system), []
        explained = self.instructions.replace("{tools}", mark(1))
        system = "\n\n".join(part for part in (self._params.system, explained) if part)
        return self.template.opening(system), [self.describe(tools)]

    def _following(self, messages: list[str], action_token_ids: Sequence[int]) -> Part:
        texts = self.observations(messages)
        if not self.template.several:
            texts = ["\n\n".join(texts)]
        return self.template.continuation(len(texts)), texts


def _summary(action: Action) -> str:
    """An action in a few words, for messages."""
    calls = (f"{call.name}({json.dumps(call.arguments)})" for call in action.tool_calls)
    said = ", ".join(calls) or action.error or action.answer or action.text
    return f"{action.type} '{said[:120]}'"

"""A tokenizer's chat template, taken apart into what can be appended turn by turn.

The template is rendered with marks in place of the messages' texts. What stands before the first
mark of the agent is the opening; what stands between two turns of the agent is what has to be
appended after an action. This is only right if rendering the longer conversation leaves the
beginning as it was, so construction renders real conversations as a whole and compares them, text
and ids, with what appending gives. Templates that rewrite earlier turns (dropping their reasoning,
trimming, moving a system message) are refused: their conversations cannot be trained on as they
were sampled.

A template that takes reasoning out of earlier turns agrees with ``chat.reasoning: drop``, where the
policy does not see it again either; then the turns that are compared have none. A template that
writes reasoning into every turn (or begins it in the header) agrees with ``keep``; then all turns
that are compared have some.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple

from agent_r1.chat.encoding import Layout, Markup
from agent_r1.chat.rendering import (
    WRITTEN,
    ChatTemplateError,
    Part,
    Renderer,
    Written,
    conversation,
    difference,
    mark,
    message,
)

REASONED = "<think>\nOne thought.\n</think>\n\n"
"""Reasoning as models are trained to write it: templates that keep it may put its blanks right."""

_BEGUN = "<think>\n"
"""What some templates' header of a turn ends with."""

_LEADS = (("", ""), (REASONED, REASONED), (REASONED, REASONED.removeprefix(_BEGUN)))
"""What every turn begins with: in its message, and behind the header."""

_ACTIONS = (
    'Plain words.\n<tool_call>\n{"name": "f", "arguments": {"x": "\'a\' & <b>"}}\n</tool_call>',
    "<answer>Paris</answer>",
)
TEXTS = ('First "page"\n<b>one</b> & two: café', "  Second page, 2nd.\n")
"""What templates are known to change: quotes, markup, line breaks, accents, blanks around it."""


class _Way(NamedTuple):
    """How observations may be appended, and to what turns."""

    role: str
    several: bool
    lead: tuple[str, str]
    written: Written


class ChatTemplate:
    """The opening and the continuations of a template's conversations, as layouts."""

    def __init__(
        self,
        renderer: Renderer,
        roles: Sequence[str] = ("tool", "user"),
        reasoning: Literal["keep", "drop"] = "keep",
    ):
        """
        Args:
            renderer: of the template.
            roles: that an observation may have, the best first.
            reasoning: whether earlier turns have theirs.

        Raises:
            ChatTemplateError: appending does not give what the template renders.
        """
        self._renderer = renderer
        self._openings: dict[str, Layout] = {}
        self._continuations: dict[int, Layout] = {}
        self._keeps = reasoning == "keep"
        self._way = self._choose(roles)
        self.observation_role = self._way.role
        self.several = self._way.several
        """Whether an observation may be several messages; else it has to be put into one."""
        self.always_reasons = bool(self._way.lead[0])
        """Whether this is only proven for turns that have reasoning."""
        stop = self.continuation(1)[0]
        assert isinstance(stop, int)  # _after_action refuses anything else
        self.stop_token_id: int = stop
        """The template's own end of an assistant turn."""

    def opening(self, system: str) -> Layout:
        """Everything before the first action; ``Slot(0)`` is the first observation.

        Args:
            system: text of the system message; empty for none. A ``mark(1)`` in it is ``Slot(1)``.
        """
        if system not in self._openings:
            slots = [1, 0] if mark(1) in system else [0]
            self._openings[system] = self._renderer.opening(system, slots)
        return self._openings[system]

    def continuation(self, messages: int) -> Layout:
        """What follows the text of an action, its stop token first, up to the next assistant
        header; ``Slot(i)`` is the i-th of the observation's messages."""
        if messages not in self._continuations:
            self._continuations[messages] = self._after_action(self._way, messages)
        return self._continuations[messages]

    def _choose(self, roles: Sequence[str]) -> _Way:
        """The first way that is proven.

        Raises:
            ChatTemplateError: there is none; the message tells what failed for each role.
        """
        failures = []
        for role in roles:
            reasons = []
            for several, written in itertools.product((True, False), WRITTEN):
                way = _Way(role, several, self._lead(role), written)
                try:
                    self._verify(way)
                except ChatTemplateError as error:
                    reasons.append(f"with role '{role}' {error}")
                else:
                    return way
            failures.append(reasons[0])
        raise ChatTemplateError(
            "the chat template cannot be extended turn by turn: " + "; ".join(failures)
        )

    def _lead(self, role: str) -> tuple[str, str]:
        """What the template begins every turn with; nothing, if it does not insist."""
        for lead in _LEADS if self._keeps else ():
            with contextlib.suppress(ChatTemplateError):
                whole, before = self._begun(_Way(role, False, lead, "plain"), 1)
                if whole.startswith(before):
                    return lead
        return _LEADS[0]

    def _begun(self, way: _Way, messages: int) -> tuple[str, str]:
        """A conversation, and how far it should go up to the end of the action."""
        start = conversation("", "question")
        told, behind = way.lead
        turns = [message("assistant", told + mark(messages))]
        turns += [message(way.role, mark(index)) for index in range(messages)]
        before = self._renderer.render(start) + behind + mark(messages)
        return self._renderer.render([*start, *turns]), before

    def _after_action(self, way: _Way, messages: int) -> Layout:
        whole, before = self._begun(way, messages)
        if not whole.startswith(before):
            raise ChatTemplateError(
                "the beginning of a conversation changes when a turn is added "
                f"({difference(whole, before)})"
            )
        slots = range(messages)
        written = dict.fromkeys(slots, way.written)
        layout = self._renderer.layout(whole[len(before) :], slots, written)
        if not layout or not isinstance(layout[0], int):
            raise ChatTemplateError("the assistant's turn does not end with a stop token")
        return layout

    def _verify(self, way: _Way) -> None:
        """Compare whole renderings with what appending gives, for several conversations."""
        told, behind = way.lead
        thought = REASONED if self._keeps and not told else ""
        rounds = (("", _ACTIONS[0], TEXTS[:1]), (thought, _ACTIONS[1], TEXTS))
        for system in ("Be brief.", ""):
            messages = conversation(system, TEXTS[1])
            parts: list[Part] = [(self.opening(system), TEXTS[1:])]
            for thought, action, texts in (*rounds, *rounds):
                shown = texts if way.several else texts[-1:]
                messages.append(message("assistant", told + thought + action))
                messages += [message(way.role, text) for text in shown]
                said = self._renderer.encoder.pieces([Markup(behind + thought + action)])
                parts += [(said, ()), (self._after_action(way, len(shown)), shown)]
            self._renderer.compare(messages, parts)

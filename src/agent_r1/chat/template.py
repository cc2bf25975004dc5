"""Takes a tokenizer's chat template apart into what can be appended turn by turn.

1. The template is rendered with marks in place of the messages' texts. The text before the agent's
   first turn is the opening. The text between two turns of the agent is what to append after an
   action.
2. This is only right if a longer conversation begins exactly as the shorter one. So construction
   renders whole conversations and compares them, as text and as ids, with what appending gives.
3. Templates that rewrite earlier turns (drop their reasoning, trim them, move a system message) are
   refused: their conversations cannot be trained on as they were sampled.
4. With ``chat.reasoning: drop`` the policy does not see earlier reasoning either, so a template may
   remove it: the turns that are compared have none. With ``keep`` a template may write reasoning
   into every turn, or begin it in the header: then all turns that are compared have some.
"""

from __future__ import annotations

import contextlib
import functools
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
"""Reasoning as models are trained to write it: templates that keep it may fix its whitespace."""

_BEGUN = "<think>\n"
"""The end of a turn's header in some templates."""

_LEADS = (("", ""), (REASONED, REASONED), (REASONED, REASONED.removeprefix(_BEGUN)))
"""What every turn begins with: in its message, and after the header."""

_ACTIONS = (
    'Plain words.\n<tool_call>\n{"name": "f", "arguments": {"x": "\'a\' & <b>"}}\n</tool_call>',
    "<answer>Paris</answer>",
)
TEXTS = ('First "page"\n<b>one</b> & two: café', "  Second page, 2nd.\n")
"""What templates may change: quotes, markup, line breaks, accents, surrounding whitespace."""


class _Way(NamedTuple):
    """How observations may be appended, and to which turns."""

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
            roles: roles that an observation may have, the best first.
            reasoning: whether earlier turns keep their reasoning.

        Raises:
            ChatTemplateError: appending does not give what the template renders.
        """
        self._renderer = renderer
        self._openings: dict[str, Layout] = {}
        self._keeps = reasoning == "keep"
        self._way = self._choose(roles)
        self.observation_role = self._way.role
        self.several = self._way.several
        self.continuation = functools.cache(functools.partial(self._after_action, self._way))
        """Number of messages → what follows the text of an action, its stop token first, up to the
        next assistant header; ``Slot(i)`` is the i-th of the observation's messages."""
        """Whether an observation may be several messages; otherwise they are joined."""
        self.always_reasons = bool(self._way.lead[0])
        """Whether this is proven only for turns with reasoning."""
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

    def _choose(self, roles: Sequence[str]) -> _Way:
        """The first way that is proven to work.

        Raises:
            ChatTemplateError: no way works; the message says what failed for each role.
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
        """What the template begins every turn with; empty if it does not require anything."""
        for lead in _LEADS if self._keeps else ():
            with contextlib.suppress(ChatTemplateError):
                whole, before = self._begun(_Way(role, False, lead, "plain"), 1)
                if whole.startswith(before):
                    return lead
        return _LEADS[0]

    def _begun(self, way: _Way, messages: int) -> tuple[str, str]:
        """A conversation, and how far it should go up to the end of the action."""
        start = conversation("", "question")
        said, behind = way.lead
        turns = [message("assistant", said + mark(messages))]
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
        said, behind = way.lead
        thought = REASONED if self._keeps and not said else ""
        rounds = (("", _ACTIONS[0], TEXTS[:1]), (thought, _ACTIONS[1], TEXTS))
        for system in ("Be brief.", ""):
            messages = conversation(system, TEXTS[1])
            parts: list[Part] = [(self.opening(system), TEXTS[1:])]
            for thought, action, texts in (*rounds, *rounds):
                shown = texts if way.several else texts[-1:]
                messages.append(message("assistant", said + thought + action))
                messages += [message(way.role, text) for text in shown]
                turn = self._renderer.encoder.pieces([Markup(behind + thought + action)])
                parts += [(turn, ()), (self._after_action(way, len(shown)), shown)]
            self._renderer.compare(messages, parts)

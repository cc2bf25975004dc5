"""A chat template's own tool calls: which dialect it writes, and what is appended after a turn.

As in `agent_r1.chat.template`, nothing is assumed: construction renders whole conversations with
``tools=`` and structured ``tool_calls``. It compares them, as text and as token ids, with the
opening, the calls as the dialect writes them, and what is appended in between.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

from agent_r1.chat.dialects import DIALECTS, Dialect
from agent_r1.chat.encoding import Layout
from agent_r1.chat.rendering import (
    WRITTEN,
    ChatTemplateError,
    Message,
    Part,
    Renderer,
    Written,
    conversation,
    difference,
    mark,
    message,
)
from agent_r1.chat.template import REASONED, TEXTS
from agent_r1.mdp import Action, ActionType, ToolCall

_DESCRIPTION = "Look a page up."
_PROBE_TOOL = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": _DESCRIPTION,
        "parameters": {
            "type": "object",
            "properties": {"title": {"type": "string", "description": "of the page"}},
            "required": ["title"],
        },
    },
}
_CALLS = (ToolCall("lookup", {"title": "'a' & <b>é"}), ToolCall("lookup", {"title": "b", "n": 2}))


MakeLayout = Callable[[int], Layout]
"""Number of messages → what is appended."""


def _act(*calls: ToolCall) -> Action:
    return Action(ActionType.TOOL_CALL, "", tool_calls=calls)


def _answer(text: str) -> Action:
    return Action(ActionType.ANSWER, "", answer=text)


def renders_tools(renderer: Renderer) -> bool:
    """Whether the template shows the tools to the agent.

    Raises:
        ChatTemplateError: the template fails.
    """
    rendered = renderer.render(conversation("Be brief.", "question"), [_PROBE_TOOL])
    return "lookup" in rendered and _DESCRIPTION in rendered


def find_dialect(renderer: Renderer, reasoning: Literal["keep", "drop"]) -> NativeTemplate:
    """The template with the dialect that it provably writes.

    Raises:
        ChatTemplateError: it does not render tools, or writes calls in no known dialect.
    """
    if not renders_tools(renderer):
        raise ChatTemplateError(
            "the chat template does not render tools: choose chat.format hermes, react or code "
            "with chat.render_tools: true, which explain the tools in the system message"
        )
    failures = []
    for dialect in DIALECTS:
        try:
            return NativeTemplate(renderer, dialect, reasoning)
        except ChatTemplateError as error:
            failures.append(f"as {dialect.name}: {error}")
    raise ChatTemplateError(
        "the chat template's tool calls cannot be extended turn by turn: " + "; ".join(failures)
    )


class NativeTemplate:
    """The opening and the continuations of a template's conversations with tools, as layouts."""

    def __init__(self, renderer: Renderer, dialect: Dialect, reasoning: Literal["keep", "drop"]):
        """
        Raises:
            ChatTemplateError: the template does not write turns as the dialect does.
        """
        self._renderer = renderer
        self.dialect = dialect
        self._thought = dialect.thought
        if reasoning == "keep" and dialect.name == "qwen":
            self._thought = REASONED + dialect.thought
        elif reasoning == "drop" and dialect.name == "harmony":
            self._thought = ""  # a harmony thought is reasoning
        self._openings: dict[tuple[str, str], Layout] = {}
        roles = ("tool", "user")
        called = self._choose(roles[:1], lambda name: _act(ToolCall(name, {})), self._verify_calls)
        spoken = self._choose(roles, _answer, self._verify_words)
        self.after_call = functools.cache(called)
        """What follows a call; ``Slot(i)`` is the i-th of ``messages`` results, and the slot after
        them is the tool's name, where the template repeats it."""
        self.after_words = functools.cache(spoken)
        """What follows a turn without a call, with a slot for the environment's reply."""

    def opening(self, system: str, schemas: Sequence[dict[str, Any]]) -> Layout:
        """Everything before the first action; ``Slot(0)`` is the first observation."""
        key = (system, json.dumps(schemas))
        if key not in self._openings:
            self._openings[key] = self._renderer.opening(system, [0], schemas)
        return self._openings[key]

    # --- layouts -----------------------------------------------------------------------------

    def _layout(
        self, act: Callable[[str], Action], role: str, written: Written, messages: int
    ) -> Layout:
        action = act(mark(messages))
        start = conversation("", "question")
        before = self._render(start) + "".join(self.dialect.write(action))
        turns = [self.dialect.message(action)]
        turns += [message(role, mark(index)) for index in range(messages)]
        whole = self._render([*start, *turns])
        if not whole.startswith(before):
            raise ChatTemplateError(f"it writes a turn differently ({difference(whole, before)})")
        rest = whole[len(before) :]
        slots = list(range(messages))
        if mark(messages) in rest:  # the name of the tool, before the result
            slots.insert(0, messages)
        layout = self._renderer.layout(rest, slots, dict.fromkeys(range(messages), written))
        if not layout or not isinstance(layout[0], int):
            raise ChatTemplateError("the assistant's turn does not end with a stop token")
        return layout

    def _render(self, messages: list[Message]) -> str:
        return self._renderer.render(messages, [_PROBE_TOOL])

    # --- proofs ------------------------------------------------------------------------------

    def _choose(
        self,
        roles: Sequence[str],
        act: Callable[[str], Action],
        verify: Callable[[str, MakeLayout], None],
    ) -> MakeLayout:
        """``messages`` → layout, for the first role and way of writing that pass verification."""
        reasons = []
        for role in roles:
            for written in WRITTEN:
                found = functools.partial(self._layout, act, role, written)
                try:
                    verify(role, found)
                except ChatTemplateError as error:
                    reasons.append(str(error))
                else:
                    return found
        raise ChatTemplateError(reasons[0])

    def _verify_calls(self, role: str, layout: MakeLayout) -> None:
        calls = _CALLS if self.dialect.parallel else _CALLS[1:]
        rounds = (
            (_act(_CALLS[0]), "", TEXTS[:1]),
            (_act(*calls), self._thought, TEXTS[-len(calls) :]),
        )
        for system in ("Be brief.", ""):
            messages, parts = self._start(system)
            for action, thought, texts in (*rounds, *rounds):
                messages.append(self.dialect.message(action, thought))
                messages += [message(role, text) for text in texts]
                contents = [*texts, action.tool_calls[0].name]
                parts += [self._said(action, thought), (layout(len(texts)), contents)]
            self._renderer.compare(messages, parts, [_PROBE_TOOL])

    def _verify_words(self, role: str, layout: MakeLayout) -> None:
        action = _answer("Plain words.")
        messages, parts = self._start("Be brief.")
        for text in TEXTS:
            messages += [self.dialect.message(action), message(role, text)]
            parts += [self._said(action), (layout(1), [text, ""])]
        self._renderer.compare(messages, parts, [_PROBE_TOOL])

    def _start(self, system: str) -> tuple[list[Message], list[Part]]:
        return conversation(system, TEXTS[1]), [(self.opening(system, [_PROBE_TOOL]), TEXTS[1:])]

    def _said(self, action: Action, thought: str = "") -> Part:
        return self._renderer.encoder.pieces(self.dialect.write(action, thought)), ()

"""A tokenizer's chat template, taken apart into what can be appended turn by turn.

The template is rendered with marks in place of the messages' texts. What stands before the first
mark of the agent is the opening; what stands between two turns of the agent is what has to be
appended after an action. This is only right if rendering the longer conversation leaves the
beginning as it was, so construction renders real conversations as a whole and compares them, text
and ids, with what appending gives. Templates that rewrite earlier turns (dropping their reasoning,
trimming, moving a system message) are refused: their conversations cannot be trained on as they
were sampled.
"""

from __future__ import annotations

import re
from typing import Any

from jinja2.exceptions import TemplateError
from transformers import PreTrainedTokenizerFast

from agent_r1.chat.encoding import ContentEncoder, Layout, Slot
from agent_r1.parameters import ParameterError

_MARK = re.compile("\ue000(\\d+)\ue001")
"""A slot in rendered text: private-use characters, which no template touches."""

_ROLES = ("tool", "user")
"""The role of an observation: ``tool`` where the template has it, else ``user``."""

_ACTIONS = (
    'Plain words.\n<tool_call>\n{"name": "f", "arguments": {"x": "\'a\' & <b>"}}\n</tool_call>',
    "<think>One thought.</think>\n\n<answer>Paris</answer>",
)
_TEXTS = ('First "page"\n<b>one</b> & two: café', "Second page, 2nd.")
"""What templates are known to change: quotes, markup, line breaks, reasoning, accents."""


class ChatTemplateError(ParameterError):
    """A chat template is missing or cannot be extended turn by turn; the message says why."""


class ChatTemplate:
    """The opening and the continuations of a template's conversations, as layouts."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        """
        Raises:
            ChatTemplateError: there is no template, or appending does not give what it renders.
        """
        if not tokenizer.chat_template:
            raise ChatTemplateError(
                "the tokenizer has no chat template: add chat_template.jinja to the model folder"
            )
        self._tokenizer = tokenizer
        self.encoder = ContentEncoder(tokenizer)
        self._openings: dict[str, Layout] = {}
        self._continuations: dict[int, Layout] = {}
        self.observation_role = self._choose_role()
        stop = self.continuation(1)[0]
        assert isinstance(stop, int)  # _after_action refuses anything else
        self.stop_token_id: int = stop
        """The template's own end of an assistant turn."""

    def opening(self, system: str) -> Layout:
        """Everything before the first action; ``Slot(0)`` is the first observation.

        Args:
            system: text of the system message; empty for none.
        """
        if system not in self._openings:
            text = self._render(self._start(system, _mark(0)))
            self._openings[system] = self._layout(text, [0])
        return self._openings[system]

    def continuation(self, messages: int) -> Layout:
        """What follows the text of an action, its stop token first, up to the next assistant
        header; ``Slot(i)`` is the i-th of the observation's messages."""
        if messages not in self._continuations:
            self._continuations[messages] = self._after_action(self.observation_role, messages)
        return self._continuations[messages]

    def _choose_role(self) -> str:
        """The first role that can be appended.

        Raises:
            ChatTemplateError: there is none; the message tells what failed for each.
        """
        failures = []
        for role in _ROLES:
            try:
                self._verify(role)
            except ChatTemplateError as error:
                failures.append(f"with role '{role}' {error}")
            else:
                return role
        raise ChatTemplateError(
            "the chat template cannot be extended turn by turn: " + "; ".join(failures)
        )

    def _after_action(self, role: str, messages: int) -> Layout:
        start = self._start("", "question")
        before = self._render(start)
        turns = [_message("assistant", _mark(messages))]
        turns += [_message(role, _mark(index)) for index in range(messages)]
        whole = self._render([*start, *turns])
        if not whole.startswith(before + _mark(messages)):
            raise ChatTemplateError(
                "the beginning of a conversation changes when a turn is added "
                f"({_difference(whole, before + _mark(messages))})"
            )
        layout = self._layout(whole[len(before + _mark(messages)) :], list(range(messages)))
        if not layout or not isinstance(layout[0], int):
            raise ChatTemplateError("the assistant's turn does not end with a stop token")
        return layout

    def _verify(self, role: str) -> None:
        """Compare whole renderings with what appending gives, for several conversations."""
        one, two = self._after_action(role, 1), self._after_action(role, 2)
        rounds = ((_ACTIONS[0], one, _TEXTS[:1]), (_ACTIONS[1], two, _TEXTS))
        for system in ("Be brief.", ""):
            messages = self._start(system, _TEXTS[1])
            parts = [(self.opening(system), _TEXTS[1:])]
            for action, layout, texts in (*rounds, *rounds):
                messages.append(_message("assistant", action))
                messages += [_message(role, text) for text in texts]
                parts += [(self.encoder.layout([action]), ()), (layout, texts)]
            whole = self._render(messages)
            appended = "".join(self.encoder.text(*part) for part in parts)
            if appended != whole:
                raise ChatTemplateError(f"earlier turns change ({_difference(whole, appended)})")
            ids = [token for part in parts for token in self.encoder.encode(*part)]
            if ids != self._tokenizer.encode(whole, add_special_tokens=False):
                raise ChatTemplateError("the same text has other token ids when it is appended")

    def _start(self, system: str, first: str) -> list[dict[str, str]]:
        head = [_message("system", system)] if system else []
        return [*head, _message("user", first)]

    def _render(self, messages: list[dict[str, str]]) -> str:
        try:
            rendered: Any = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise ChatTemplateError(f"it fails: {error}") from None
        return rendered

    def _layout(self, text: str, slots: list[int]) -> Layout:
        """``text`` cut at its marks, which must be ``slots`` in this order, each once."""
        pieces = _MARK.split(text)
        found = [int(index) for index in pieces[1::2]]
        if found != slots:
            raise ChatTemplateError("it leaves out, repeats or reorders the messages' texts")
        return self.encoder.layout(
            [Slot(int(piece)) if i % 2 else piece for i, piece in enumerate(pieces)]
        )


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _mark(index: int) -> str:
    return f"\ue000{index}\ue001"


def _difference(whole: str, appended: str) -> str:
    """Where two texts part, for an error message."""
    pairs = enumerate(zip(whole, appended, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(whole), len(appended)))
    return f"the whole has {whole[at : at + 30]!r} where appending has {appended[at : at + 30]!r}"

"""Renders conversations with a tokenizer's own chat template, with marks where content goes.

The date is fixed: templates that print today's date (Llama 3.2, gpt-oss) would give other tokens
tomorrow, and no stage could be rerun.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from jinja2.exceptions import TemplateError
from transformers import PreTrainedTokenizerFast

from agent_r1.chat.encoding import ContentEncoder, Layout, Slot
from agent_r1.parameters import ParameterError

_MARK = re.compile("\ue000(\\d+)\ue001")
"""A slot in rendered text: private-use characters, which templates leave alone."""

Written = Literal["plain", "stripped", "json"]
WRITTEN: tuple[Written, ...] = ("plain", "stripped", "json")
"""What templates do to the text of a message, in the order in which it is tried."""

PROBE = '  "x" & <b>\n'
"""A text that comes out different for each of them."""

Message = dict[str, Any]
Part = tuple[Layout, Sequence[str]]
"""A layout with its contents."""


class ChatTemplateError(ParameterError):
    """A chat template is missing or cannot be extended turn by turn; the message says why."""


def mark(index: int) -> str:
    """The mark of a slot in rendered text."""
    return f"\ue000{index}\ue001"


def message(role: str, content: str) -> Message:
    """A message of a conversation, as templates take it."""
    return {"role": role, "content": content}


def conversation(system: str, first: str) -> list[Message]:
    """The beginning of a conversation; an empty system message is left out."""
    head = [message("system", system)] if system else []
    return [*head, message("user", first)]


class Renderer:
    """A tokenizer's chat template."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        date: str = "2024-07-26",
        arguments: Mapping[str, Any] | None = None,
    ):
        """
        Args:
            date: today's date for the template, ``YYYY-MM-DD``.
            arguments: variables for the template, such as ``reasoning_effort``.

        Raises:
            ChatTemplateError: the tokenizer has no template.
            ValueError: the tokenizer makes control tokens from plain text.
        """
        if not tokenizer.chat_template:
            raise ChatTemplateError(
                "the tokenizer has no chat template: add chat_template.jinja to the model folder"
            )
        self._tokenizer = tokenizer
        self._clock = _stopped_clock(datetime.date.fromisoformat(date))
        self._arguments = dict(arguments or {})
        self.encoder = ContentEncoder(tokenizer)

    @property
    def dated(self) -> bool:
        """Whether the template asks for the date."""
        return "strftime_now" in self._template(None)

    def render(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] | None = None
    ) -> str:
        """The whole conversation, up to the header of the next assistant turn.

        Raises:
            ChatTemplateError: the template refuses it.
        """
        try:
            rendered: Any = self._tokenizer.apply_chat_template(
                list(messages),
                chat_template=self._template(tools),
                tools=list(tools) if tools else None,
                tokenize=False,
                add_generation_prompt=True,
                **self._arguments,
            )
        except (TemplateError, TypeError, ValueError, LookupError) as error:
            raise ChatTemplateError(f"the template fails: {error}") from None
        return rendered

    def _template(self, tools: Sequence[dict[str, Any]] | None) -> str:
        """The template for conversations with or without tools, with a fixed date."""
        template = self._tokenizer.get_chat_template(None, list(tools) if tools else None)
        return self._clock + template if "strftime_now" in template else template

    def layout(self, text: str, slots: Sequence[int], written: Mapping[int, Written]) -> Layout:
        """``text`` cut at its marks.

        Args:
            slots: the marks that it must have, in this order.
            written: slot → what the template does to its content; ``plain`` by default.

        Raises:
            ChatTemplateError: the text has other marks, or does not quote their content for JSON.
        """
        pieces: list[str | Slot] = list(_MARK.split(text))
        found = [int(str(index)) for index in pieces[1::2]]
        if found != list(slots):
            raise ChatTemplateError("it leaves out, repeats or reorders the messages' texts")
        for place, index in zip(range(1, len(pieces), 2), found, strict=True):
            how = written.get(index, "plain")
            pieces[place] = Slot(index, how)
            if how == "json":  # the quotes come with the content
                before, after = str(pieces[place - 1]), str(pieces[place + 1])
                if not (before.endswith('"') and after.startswith('"')):
                    raise ChatTemplateError("it does not quote the messages' texts")
                pieces[place - 1], pieces[place + 1] = before[:-1], after[1:]
        return self.encoder.layout(pieces)

    def opening(
        self, system: str, slots: Sequence[int], tools: Sequence[dict[str, Any]] | None = None
    ) -> Layout:
        """Everything before the first action; ``Slot(0)`` is the first observation.

        Raises:
            ChatTemplateError: the template changes the first observation in a way of its own.
        """
        text = self.render(conversation(system, mark(0)), tools)
        whole = self.render(conversation(system, PROBE), tools)
        contents = [PROBE, *(mark(index) for index in sorted(slots) if index)]
        for how in WRITTEN:
            try:
                layout = self.layout(text, slots, {0: how})
            except ChatTemplateError:
                if how == "plain":
                    raise
                continue
            if self.encoder.text(layout, contents) == whole:
                return layout
        raise ChatTemplateError("it changes the first observation")

    def compare(
        self,
        messages: Sequence[Message],
        parts: Sequence[Part],
        tools: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        """Compare the parts, appended to each other, with the rendering of the whole conversation.

        Raises:
            ChatTemplateError: they differ, as text or as token ids.
        """
        whole = self.render(messages, tools)
        appended = "".join(self.encoder.text(*part) for part in parts)
        if appended != whole:
            raise ChatTemplateError(f"earlier turns change ({difference(whole, appended)})")
        ids = [token for part in parts for token in self.encoder.encode(*part)]
        if ids != self._tokenizer.encode(whole, add_special_tokens=False):
            raise ChatTemplateError("the same text has other token ids when it is appended")


def _stopped_clock(date: datetime.date) -> str:
    """A macro that replaces the function that gives templates today's date.

    transformers does not pass a caller's functions to a template, so it has to be Jinja. The
    formats that templates use are replaced one by one, so that names do not depend on the locale.
    """
    months = "January February March April May June July August September October November December"
    days = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
    month, day = months.split()[date.month - 1], days.split()[date.weekday()]
    values = {
        "%Y": f"{date.year:04}", "%m": f"{date.month:02}", "%d": f"{date.day:02}",
        "%B": month, "%b": month[:3], "%A": day, "%a": day[:3],
        "%H": "00", "%M": "00", "%S": "00",
    }  # fmt: skip
    replaced = "".join(f"|replace('{form}', '{text}')" for form, text in values.items())
    return f"{{% macro strftime_now(format) %}}{{{{ format{replaced} }}}}{{% endmacro %}}"


def difference(whole: str, appended: str) -> str:
    """Where two texts first differ, for an error message."""
    whole, appended = (_MARK.sub("{text}", each) for each in (whole, appended))
    pairs = enumerate(zip(whole, appended, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(whole), len(appended)))
    return f"the whole has {whole[at : at + 40]!r} where appending has {appended[at : at + 40]!r}"

"""Encodes text that is only partly trusted.

The chat template's own text may contain control tokens; a question or a web page must not, even if
it spells them out. So each run of text between two control tokens of the template is encoded by a
copy of the tokenizer without added tokens: ``<|im_end|>`` in a page is ten ordinary characters.
Runs are not split where trusted and untrusted text meet, so the ids are those of the template's own
rendering unless the content spells a control token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast


class Markup(str):
    """Text whose control tokens are real: the format's own, not an argument that spells one."""

    __slots__ = ()


def marked(text: str, tags: Sequence[str]) -> list[str]:
    """``text`` cut at these tags, which become `Markup`."""
    if not tags:
        return [text]
    cut = re.split("(" + "|".join(map(re.escape, tags)) + ")", text)
    return [Markup(piece) if i % 2 else piece for i, piece in enumerate(cut)]


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in a layout that content goes into."""

    index: int
    written: Literal["plain", "stripped", "json"] = "plain"
    """What the template does to the content: nothing, strip whitespace, or write a JSON string."""

    def text(self, contents: Sequence[str]) -> str:
        """The content of this place, as the template writes it."""
        content = contents[self.index]
        if self.written == "json":
            return json.dumps(content, ensure_ascii=False)
        return content.strip() if self.written == "stripped" else content


Layout = tuple[int | str | Slot, ...]
"""Control tokens (ids), plain text of the template, and slots."""


class ContentEncoder:
    """Encodes layouts of template text and content."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        """
        Raises:
            ValueError: the tokenizer makes control tokens from plain text.
        """
        backend = json.loads(tokenizer.backend_tokenizer.to_str())
        self._control = {token["content"]: token["id"] for token in backend["added_tokens"]}
        backend |= {"added_tokens": [], "post_processor": None, "truncation": None, "padding": None}
        self._spelling = {token: text for text, token in self._control.items()}
        self._plain = Tokenizer.from_str(json.dumps(backend))
        longest_first = sorted(self._control, key=len, reverse=True)
        # An empty alternation would match everywhere; (?!) matches nowhere.
        self._pattern = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
        for text, token in self._control.items():
            if token in self.content(text) and text != tokenizer.unk_token:
                raise ValueError(f"the tokenizer makes the control token {text!r} from plain text")

    def control(self, text: str) -> int | None:
        """The id of the control token with this spelling; None if there is none."""
        return self._control.get(text)

    def spells_control(self, text: str) -> str | None:
        """The first control token that a text spells; None without one."""
        found = self._pattern.search(text)
        return found.group() if found else None

    def content(self, text: str) -> list[int]:
        """Ids of untrusted text: no control tokens."""
        return self._plain.encode(text, add_special_tokens=False).ids

    def layout(self, pieces: Sequence[str | Slot]) -> Layout:
        """Template text with its control tokens found, slots kept."""
        parts: list[int | str | Slot] = []
        for piece in pieces:
            if isinstance(piece, Slot):
                parts.append(piece)
                continue
            cut = enumerate(self._pattern.split(piece))
            parts += [self._control[text] if i % 2 else text for i, text in cut if text]
        return tuple(parts)

    def pieces(self, pieces: Sequence[str]) -> Layout:
        """The layout of an agent's text: control tokens are found in `Markup` only."""
        parts: list[int | str | Slot] = []
        for piece in pieces:
            parts += self.layout([piece]) if isinstance(piece, Markup) else (piece,)
        return tuple(parts)

    def encode(self, layout: Layout, contents: Sequence[str] = ()) -> list[int]:
        """Ids of a layout with ``contents[i]`` in ``Slot(i)``."""
        ids: list[int] = []
        run: list[str] = []
        for part in (*layout, None):
            if isinstance(part, str):
                run.append(part)
            elif isinstance(part, Slot):
                run.append(part.text(contents))
            else:
                if text := "".join(run):
                    ids += self.content(text)
                run.clear()
                if part is not None:
                    ids.append(part)
        return ids

    def text(self, layout: Layout, contents: Sequence[str] = ()) -> str:
        """The text of a layout with ``contents[i]`` in ``Slot(i)``."""
        spelt = (self._spelling[part] if isinstance(part, int) else part for part in layout)
        return "".join(part.text(contents) if isinstance(part, Slot) else part for part in spelt)

"""Which part of a turn is reasoning: not read as an action, and dropped afterwards if asked for.

1. A format says which characters of a turn are reasoning; for most it is what stands before the
   last ``</think>`` (`think_spans`).
2. `token_spans` says which tokens those are. A token that holds the end of the reasoning and the
   beginning of something else stays: what is dropped is never more than the reasoning.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

THINKING, END_OF_THINKING = "<think>", "</think>"

Spans = list[tuple[int, int]]
"""``[begin, end)`` pairs, in order, apart from each other."""


def after_reasoning(text: str) -> str:
    """What a turn says when it has done with thinking."""
    return text.rpartition(END_OF_THINKING)[2]


def think_spans(text: str) -> Spans:
    """The characters up to the last ``</think>``, and the line breaks behind it, which belong to
    it in every template that takes it out."""
    said = after_reasoning(text)
    end = len(text) - len(said.lstrip("\n"))
    return [(0, end)] if END_OF_THINKING in text else []


def token_spans(decode: Callable[[Sequence[int]], str], ids: Sequence[int], spans: Spans) -> Spans:
    """The tokens that lie in these characters with all they hold.

    Args:
        decode: token ids → text.
        ids: of the text that ``spans`` is about.
        spans: of characters.
    """

    def length(count: int) -> int:
        return len(decode(ids[:count]))

    counts = range(len(ids) + 1)
    found = []
    for begin, end in spans:
        first = bisect.bisect_left(counts, begin, key=length)
        behind = bisect.bisect_right(counts, end, key=length) - 1
        if first < behind:
            found.append((first, behind))
    return found

"""BM25 search over titled pages, the same in every run.

1. A page is indexed by its title and text, words lower-cased and without accents. Chinese, Japanese
   and Korean, which write no blanks between words, are indexed as pairs of characters.
2. Pages whose title is the query rank first: asking for a page by its name gives that page, however
   often others mention it.
3. Then by BM25 score; pages of equal score stand in corpus order.

An index is built once per content and shared by all threads.
"""

from __future__ import annotations

import functools
import hashlib
import re
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Sequence

import bm25s
import numpy as np

from agent_r1.tasks.segmentation import has_cjk, pairs

CACHED_QUERIES = 65_536
"""Per index. Agents of a group ask the same things again and again."""

CACHED_INDEXES = 64
"""Corpora and tasks' own paragraphs; the least recently used goes first."""

NOTHING = "no page matches"
"""What a search without results tells the agent."""

_WORD = re.compile(r"\w+")

_VOICED = "\u3099\u309a"
"""What makes が of か, and ぱ of は."""


class SearchIndex:
    """Pages and what finds them; immutable."""

    def __init__(self, titles: Sequence[str], texts: Sequence[str]):
        """
        Args:
            titles: one per page.
            texts: one per page, in the same order.
        """
        self.titles, self.texts = tuple(titles), tuple(texts)
        self._by_title: dict[str, list[int]] = {}
        for page, title in enumerate(self.titles):
            self._by_title.setdefault(" ".join(words(title)), []).append(page)
        corpus = [words(f"{title} {text}") for title, text in zip(titles, texts, strict=True)]
        self._bm25: bm25s.BM25 | None = None
        if any(corpus):
            self._bm25 = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend="numpy")
            self._bm25.index(corpus, show_progress=False)
        # The cache belongs to the instance: it goes when the index goes.
        self._ranked = functools.lru_cache(CACHED_QUERIES)(self._rank)

    def rank(self, query: str, top_k: int) -> tuple[int, ...]:
        """The best pages for a query, at most ``top_k``; none where no word matches."""
        return self._ranked(" ".join(words(query)), top_k)

    def search(self, query: str, top_k: int = 1) -> str:
        """The best pages as text: ``title``, line break, ``text``; numbered if there may be more
        than one."""
        pages = [f"{self.titles[page]}\n{self.texts[page]}" for page in self.rank(query, top_k)]
        if not pages:
            return NOTHING
        if top_k == 1:
            return pages[0]
        return "\n\n".join(f"[{number}] {page}" for number, page in enumerate(pages, 1))

    def _rank(self, query: str, top_k: int) -> tuple[int, ...]:
        titled = self._by_title.get(query, []) if query else []
        scored = self._best(query.split(), top_k + len(titled))
        return tuple(dict.fromkeys([*titled, *scored]))[:top_k]

    def _best(self, query: list[str], count: int) -> list[int]:
        """Pages by falling score, those that match nothing left out."""
        known = self._bm25.get_tokens_ids(query) if self._bm25 is not None else []
        if not known:
            return []
        scores = self._bm25.get_scores_from_ids(known)
        matching = np.flatnonzero(scores > 0)
        if len(matching) > count:
            # All that reach the count-th best score: ties at the border are decided below.
            border = np.partition(scores[matching], -count)[-count]
            matching = matching[scores[matching] >= border]
        order = np.lexsort((matching, -scores[matching]))
        return matching[order][:count].tolist()


def words(text: str) -> list[str]:
    """The words of a text: lower case, accents and punctuation removed."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    # NFKD takes the voiced marks off Japanese syllables, too: there they are no accents.
    kept = "".join(c for c in decomposed if c in _VOICED or not unicodedata.combining(c))
    found = _WORD.findall(unicodedata.normalize("NFC", kept) if has_cjk(kept) else kept)
    return [part for word in found for part in pairs(word)]


_indexes: OrderedDict[str, SearchIndex] = OrderedDict()
_building = threading.Lock()


def index_pages(titles: Sequence[str], texts: Sequence[str]) -> SearchIndex:
    """The index of these pages, built once per content."""
    digest = hashlib.sha256()
    for title, text in zip(titles, texts, strict=True):
        for part in (title, text):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
    key = digest.hexdigest()
    with _building:
        if key not in _indexes:
            _indexes[key] = SearchIndex(titles, texts)
        _indexes.move_to_end(key)
        while len(_indexes) > CACHED_INDEXES:
            _indexes.popitem(last=False)
        return _indexes[key]

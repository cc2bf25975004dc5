"""Deterministic BM25 search over titled pages.

1. A page is indexed by the words of its title and text, in lower case and without accents. Chinese,
   Japanese and Korean have no spaces between words and are indexed as pairs of characters.
2. Pages whose title equals the query rank first, however often other pages mention it.
3. Other pages are ranked by BM25 score, and pages with equal scores by their order in the corpus.

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
"""Cached queries per index. Agents of a group often repeat each other's queries."""

CACHED_INDEXES = 64
"""Cached indexes of corpora and of tasks' own paragraphs. The least recently used is dropped."""

NOTHING = "no page matches"
"""The result of a search that finds no page."""

_WORD = re.compile(r"\w+")

_VOICED = "\u3099\u309a"
"""The marks that turn か into が, and は into ぱ."""


class SearchIndex:
    """Pages and their BM25 index; immutable."""

    def __init__(self, titles: Sequence[str], texts: Sequence[str]):
        """
        Args:
            titles: one per page.
            texts: one per page, in the order of ``titles``.
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
        # A cache per instance is freed with its index.
        self._ranked = functools.lru_cache(CACHED_QUERIES)(self._rank)

    def rank(self, query: str, top_k: int) -> tuple[int, ...]:
        """Positions of the best pages, at most ``top_k``; empty if no word matches."""
        return self._ranked(" ".join(words(query)), top_k)

    def search(self, query: str, top_k: int = 1) -> str:
        """The best pages as text: title, newline, text. Pages are numbered if ``top_k`` is more
        than 1."""
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
        """Positions of matching pages, by descending score."""
        known = [] if self._bm25 is None else self._bm25.get_tokens_ids(query)
        if self._bm25 is None or not known:
            return []
        scores = self._bm25.get_scores_from_ids(known)
        matching = np.flatnonzero(scores > 0)
        if len(matching) > count:
            # Keep all that reach the count-th best score. The sort below decides ties.
            border = np.partition(scores[matching], -count)[-count]
            matching = matching[scores[matching] >= border]
        order = np.lexsort((matching, -scores[matching]))
        return matching[order][:count].tolist()


def words(text: str) -> list[str]:
    """The words of a text, in lower case and without accents and punctuation."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    # NFKD also separates voiced marks from Japanese syllables. They are not accents.
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

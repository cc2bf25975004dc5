"""Split text in any writing system into words.

Chinese, Japanese and Korean text is split into characters, all other text at whitespace:
"2008年北京" becomes "2008", "年", "北", "京". MLQA (Lewis et al. 2020, arXiv:1910.07475) scores
answers in the same way ("mixed segmentation"). Splitting Chinese into whole words would need a
dictionary, and the scores would depend on it.
"""

from __future__ import annotations

import re

_CJK = (
    "\u1100-\u11ff"  # Hangul letters, into which NFKD decomposes syllables
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # Hangul syllables
    "\uff66-\uff9f"  # half-width Japanese
    "\U00020000-\U0003134f"  # rare Han
)
_CHARACTER = re.compile(f"[{_CJK}]")
_RUN = re.compile(f"[{_CJK}]+")
_SEGMENT = re.compile(f"[{_CJK}]|[^\\s{_CJK}]+")


def has_cjk(text: str) -> bool:
    """Whether a text contains Chinese, Japanese or Korean characters."""
    return _CHARACTER.search(text) is not None


def segments(text: str) -> list[str]:
    """The words of a text: runs without whitespace; each Chinese, Japanese or Korean character."""
    return _SEGMENT.findall(text)


def pairs(word: str) -> list[str]:
    """The terms of a word for a search index.

    Runs of Chinese, Japanese or Korean characters become overlapping pairs, as in Lucene's
    analyzers: single characters match too often, and pairs need no dictionary. A run of one
    character is one term. So is each run of other characters.
    """
    found: list[str] = []
    position = 0
    for run in _RUN.finditer(word):
        found += filter(None, [word[position : run.start()]])
        text = run.group()
        found += [text[i : i + 2] for i in range(len(text) - 1)] or [text]
        position = run.end()
    return found + list(filter(None, [word[position:]]))

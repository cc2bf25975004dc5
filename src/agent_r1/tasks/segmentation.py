"""Words of texts in any script: where no blanks stand between words, each character is one.

Chinese, Japanese and Korean are cut into characters, everything else at blanks. So "2008年北京" is
"2008", "年", "北", "京". P. Lewis et al., "MLQA" (2020), score answers in the same way ("mixed
segmentation"). Whole words of Chinese would need a dictionary, and another one gives other scores.
"""

from __future__ import annotations

import re

_CJK = (
    "\u1100-\u11ff"  # Hangul letters, which NFKD makes of syllables
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
    """Whether a text has Chinese, Japanese or Korean characters."""
    return _CHARACTER.search(text) is not None


def segments(text: str) -> list[str]:
    """A text's words: runs without blanks, and each Chinese, Japanese or Korean character."""
    return _SEGMENT.findall(text)


def pairs(word: str) -> list[str]:
    """A word for a search index: its Chinese, Japanese or Korean runs as overlapping pairs.

    Pairs find what single characters find too often, and need no dictionary, as the analyzers of
    Lucene do it. A run of one character is itself; other runs of the word are words.
    """
    found: list[str] = []
    position = 0
    for run in _RUN.finditer(word):
        found += filter(None, [word[position : run.start()]])
        text = run.group()
        found += [text[i : i + 2] for i in range(len(text) - 1)] or [text]
        position = run.end()
    return found + list(filter(None, [word[position:]]))

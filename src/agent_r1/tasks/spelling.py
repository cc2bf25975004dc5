"""One spelling per name, as in a gazetteer without diacritics."""

from __future__ import annotations

import unicodedata

# Characters that Unicode does not decompose into a base letter and an accent.
_BASE_LETTERS = str.maketrans(
    {
        "ø": "o",
        "Ø": "O",
        "ł": "l",
        "Ł": "L",
        "đ": "d",
        "Đ": "D",
        "ð": "d",
        "Ð": "D",
        "ħ": "h",
        "Ħ": "H",
        "ŋ": "ng",
        "ß": "ss",
        "æ": "ae",
        "Æ": "Ae",
        "œ": "oe",
        "Œ": "Oe",
        "þ": "th",
        "Þ": "Th",
        "ı": "i",  # noqa: RUF001
        "ə": "e",
        "Ə": "E",
        "–": "-",  # noqa: RUF001
        "`": "'",
        "’": "'",  # noqa: RUF001
        "‘": "'",  # noqa: RUF001
        "ʻ": "'",  # noqa: RUF001
        "ʼ": "'",  # noqa: RUF001
    }
)


def plain(name: str) -> str:
    """``name`` without diacritics, typographic apostrophes and surplus spaces.

    >>> plain(" São  Tomé ")
    'Sao Tome'
    """
    decomposed = unicodedata.normalize("NFKD", name.translate(_BASE_LETTERS))
    letters = "".join(sign for sign in decomposed if not unicodedata.combining(sign))
    return " ".join(letters.split())


def key(name: str) -> str:
    """A key that is equal for different spellings of one name; for look-ups, not for display."""
    return plain(name).casefold().replace("-", " ")

"""Makes text from outside safe to tokenise and to save."""

from __future__ import annotations


def valid_unicode(text: str) -> str:
    """``text`` with ``?`` for lone surrogates, which have no UTF-8 form."""
    return text.encode("utf-8", "replace").decode("utf-8")

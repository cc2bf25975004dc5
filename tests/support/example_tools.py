"""Tools that formats describe to an agent: one argument, and two of which one may be left out."""

from __future__ import annotations

from agent_r1.tools import tool


@tool
def search(query: str) -> str:
    """Find a page.

    Args:
        query: some words.
    """
    return query


@tool
def travel(to: str, days: int = 1) -> str:
    """Go somewhere.

    Args:
        to: a place.
        days: how long.
    """
    return to

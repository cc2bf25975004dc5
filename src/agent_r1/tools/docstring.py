"""Google-style docstrings: the description of a function and of each of its arguments."""

from __future__ import annotations

import inspect
import itertools
import re
from typing import NamedTuple

_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?|References|Attributes):$"
)
_ARGUMENT = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?:\s*(?P<about>.*)$")


class Docstring(NamedTuple):
    """A parsed docstring."""

    description: str
    """Everything before the first section; each paragraph is one line."""
    arguments: dict[str, str]
    """Argument name → description, as one line."""


def parse_docstring(text: str | None) -> Docstring:
    """Parse a Google-style docstring; None gives an empty one."""
    lines = inspect.cleandoc(text or "").splitlines()
    borders = [i for i, line in enumerate(lines) if _SECTION.match(line)] + [len(lines)]
    arguments: dict[str, str] = {}
    for begin, end in itertools.pairwise(borders):
        if lines[begin] in ("Args:", "Arguments:", "Parameters:"):
            arguments = _arguments(lines[begin + 1 : end])
    return Docstring(_paragraphs(lines[: borders[0]]), arguments)


def _paragraphs(lines: list[str]) -> str:
    paragraphs = re.split(r"\n\s*\n", "\n".join(lines).strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _arguments(lines: list[str]) -> dict[str, str]:
    """An entry starts at the section's own indentation; deeper lines continue it."""
    found: dict[str, str] = {}
    name = None
    section = inspect.cleandoc("\n".join(["", *lines])).splitlines()
    for line in section:
        entry = _ARGUMENT.match(line)
        if entry:
            name = entry["name"]
            found[name] = entry["about"]
        elif name is not None and line.strip():
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found

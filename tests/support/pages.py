"""The documentation as tests read it: its pages, and the code and commands in them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = (
    REPOSITORY / "README.md",
    REPOSITORY / "README.zh.md",
    REPOSITORY / "CONTRIBUTING.md",
    REPOSITORY / "CHANGELOG.md",
    *sorted(DOCS.glob("*.md")),
)
"""Everything that is written for users and contributors."""
HOW_TO = tuple(page for page in PAGES if page.stem.startswith("add_"))
"""Pages that are a complete program each."""


def text_of(page: Path) -> str:
    """The page's text."""
    return page.read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The contents of the code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    """The lines of all console blocks that call kedro."""
    lines = (line for block in blocks(text, "console") for line in block.splitlines())
    return [line for line in lines if line.startswith("kedro ")]


def write_program(page: Path, folder: Path) -> Path:
    """The program of a how-to page, as the file that the page says it is."""
    text = text_of(page)
    (program,) = blocks(text, "python")
    named = re.search(r"`src/(\w+\.py)`", text)
    assert named is not None, f"{page.name} does not say where its program belongs"
    folder.mkdir(exist_ok=True)
    file = folder / named[1]
    file.write_text(program, encoding="utf-8")
    return file

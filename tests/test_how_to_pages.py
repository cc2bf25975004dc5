"""A how-to page is a program: it runs, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from agent_r1.environments import EnvironmentOptions
from agent_r1.mdp import ToolStatus

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("add_*.md"))
ADD_A_TOOL = (DOCS / "add_a_tool.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_pages_program_prints_what_the_page_says(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    (program,), (printed,) = blocks(text, "python"), blocks(text, "text")
    file = tmp_path / "program.py"
    file.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr


def test_the_page_about_tools_knows_every_status():
    section = ADD_A_TOOL.partition("## What goes wrong")[2]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", section, re.MULTILINE)
    said = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(said) == sorted(ToolStatus)


def test_the_page_about_tools_has_options_that_exist():
    (options,) = blocks(ADD_A_TOOL, "yaml")
    read = EnvironmentOptions.read(yaml.safe_load(options)["environment"]["options"], "options")
    assert read.mcp["wiki"].tools == ("search",)

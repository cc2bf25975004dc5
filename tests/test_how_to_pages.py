"""A how-to page is a program: it runs, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml

from agent_r1.environments import EnvironmentOptions
from agent_r1.mdp import ToolStatus
from agent_r1.rewards.registry import TERMS
from tests.support.pages import DOCS, HOW_TO, blocks, text_of, write_program

ADD_A_TOOL = text_of(DOCS / "add_a_tool.md")


def test_the_pages_are_there():
    names = {page.stem for page in HOW_TO}
    assert names == {"add_an_environment", "add_a_reward_term", "add_a_tool"}


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.stem)
def test_a_pages_program_prints_what_the_page_says(page, tmp_path):
    (printed,) = blocks(text_of(page), "text")
    file = write_program(page, tmp_path)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == (printed, 0), done.stderr


def test_the_page_about_the_sandbox_says_what_it_does(tmp_path):
    (program,) = blocks(text_of(DOCS / "sandbox.md"), "python")
    file = tmp_path / "program.py"
    file.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=300)
    if "SandboxUnavailable" in done.stderr:
        pytest.skip("no isolation here")
    assert done.stdout.splitlines()[1:] == ["ok hello", "", "True passed"], done.stderr


def test_the_page_about_tools_knows_every_status():
    section = ADD_A_TOOL.partition("## What goes wrong")[2]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", section, re.MULTILINE)
    said = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(said) == sorted(ToolStatus)


def test_the_page_about_tools_has_options_that_exist():
    (options,) = blocks(ADD_A_TOOL, "yaml")
    read = EnvironmentOptions.read(yaml.safe_load(options)["environment"]["options"], "options")
    assert read.mcp["wiki"].tools == ("search",)


def test_the_page_about_rewards_knows_every_term():
    section = text_of(DOCS / "add_a_reward_term.md").partition("## Terms that ship")[2]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", section, re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(TERMS)

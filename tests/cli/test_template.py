"""``kedro check-template`` as a user types it, with the parameters of ``conf/``."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from kedro.framework.startup import bootstrap_project

from agent_r1.cli import cli
from tests.support import REPOSITORY
from tests.support.toy_tokenizer import build_tokenizer


@pytest.fixture
def check(monkeypatch):
    monkeypatch.chdir(REPOSITORY)  # where the command goes; undone afterwards
    metadata = bootstrap_project(REPOSITORY)

    def run(*folder):
        return CliRunner().invoke(cli, ["check-template", *map(str, folder)], obj=metadata)

    return run


def test_the_model_that_is_shipped_works_with_what_is_configured(check):
    able = check()
    assert able.exit_code == 0
    assert "extended turn by turn: yes" in able.output
    assert "  hermes: works" in able.output
    assert "  native: the chat template does not render tools" in able.output
    assert able.output.splitlines()[-1] == "The configured format, hermes, works."


def test_exit_code_1_where_the_configured_format_cannot_be_used(check, tmp_path):
    build_tokenizer("{{ raise_exception('only on Sundays') }}").save_pretrained(tmp_path)
    unable = check(tmp_path)
    assert unable.exit_code == 1
    assert "only on Sundays" in unable.output
    assert unable.output.splitlines()[-1] == "The configured format, hermes, cannot be used."


def test_a_folder_that_does_not_exist_is_named(check, tmp_path):
    missing = check(tmp_path / "nowhere")
    assert missing.exit_code == 1
    assert "nowhere' does not exist" in missing.output

"""``kedro run``: the whole experiment, a part of it, and bad input; with toy nodes."""

from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from kedro.framework.startup import _get_project_metadata

from agent_r1.cli import cli


@pytest.fixture
def kedro(project):
    """Runs ``kedro <arguments>`` in the toy project."""

    def invoke(*arguments: str) -> SimpleNamespace:
        metadata = _get_project_metadata(project.path)
        result = CliRunner().invoke(cli, arguments, obj=metadata)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return SimpleNamespace(code=result.exit_code, text=result.output, calls=project.calls)

    return invoke


def test_without_a_selection_it_is_the_whole_experiment(kedro):
    first = kedro("run", "--params", "experiment=x,iterations=1")
    assert first.code == 0
    assert "iter_00001" in first.text
    assert first.text.splitlines()[-1] == "Report: data/08_reporting/x/report.html"
    assert first.calls[-1] == "build_report"
    first.calls.clear()
    second = kedro("run", "--params", "experiment=x,iterations=1")
    assert "Experiment 'x' is finished; nothing to do." in second.text
    assert second.calls == []


def test_with_a_selection_it_is_kedros_own_run(kedro):
    kedro("run", "--params", "experiment=x,iterations=2").calls.clear()
    node = "iter_00002.compute_advantages"
    done = kedro("run", "--pipelines", "iter_00002", "--nodes", node, "--params", "experiment=x")
    assert done.code == 0
    assert done.calls == [node]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--params", "rolout.temperature=1"],
            "unknown parameter 'rolout'. Did you mean 'rollout'",
        ),
        (["--params", "rollout.temprature=1"], "Did you mean 'temperature'?"),
        (["--pipelines", "iter_00001"], "'iter_00000.policy' is not yet committed; make it with"),
        (["--pipelines", "prepare_task"], "there is no pipeline 'prepare_task'. Did you mean"),
        (["--env", "papper"], "papper"),
    ],
)
def test_bad_input_is_one_message_and_exit_code_1(kedro, arguments, message):
    failed = kedro("run", *arguments)
    assert failed.code == 1
    assert message in failed.text
    assert "Traceback" not in failed.text
    assert failed.calls == []


def test_a_full_disk_is_one_message_and_exit_code_1(kedro, monkeypatch):
    def write(table, where, **_):
        raise OSError(errno.ENOSPC, "Error writing bytes to file")

    monkeypatch.setattr("pyarrow.parquet.write_table", write)
    failed = kedro("run", "--params", "experiment=x")
    assert failed.code == 1
    last = failed.text.splitlines()[-1]
    assert "No space left on device" in last
    assert "03_primary/x/" in last


def test_help_says_both():
    text = CliRunner().invoke(cli, ["run", "--help"]).output
    assert "Run the whole experiment" in text
    assert "--pipelines" in text
